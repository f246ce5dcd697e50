# Becomes a server, after leaving behind a watchdog that ends it together with the process that started it.
# Arguments: the signal that ends the server, its folder, its command line.
# The standard input is a pipe that the starter holds. A line says that the server has been waited for. The end of
# the file without one says that the starter is gone: then the server goes too, with its folder.
signal=$1
folder=$2
shift 2
server=$$
exec 3<&0 </dev/null

# Forked twice: a server should have no child that it knows nothing of.
(
    (
        # When the starter goes, a server that is paused makes the system send SIGHUP to all of its process group.
        trap '' HUP INT TERM
        read -r line <&3
        [ -z "$line" ] || exit
        cd / || exit
        kill -s "$signal" "$server"
        # Paused children, too, are to see that their server has gone.
        kill -s CONT "$server" $(cat "/proc/$server/task/$server/children")
        tries=0
        while kill -s 0 "$server" && [ "$tries" -lt 100 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        [ "$tries" -lt 100 ] || kill -s KILL "$server"
        rm -rf "$folder"
    ) >/dev/null 2>&1 &
)

exec "$@" 3<&-
