-- Compare-and-swap of a whole state, for every limit that has no function of its own, and to move one to another limit.
--
-- keep_us  how long to keep it at least; what is left of its time is never shortened
-- seen     the state expected, NULL for none
-- next     the new state
-- Returns the instant, the state found and the state left; the last is NULL if another state than expected was found.

CREATE OR REPLACE FUNCTION @schema@.swap_v2(
  of_key bytea, instant_ns numeric, keep_us numeric, seen bytea, next bytea,
  OUT now_ns numeric, OUT old bytea, OUT new bytea
) LANGUAGE plpgsql AS $swap$
DECLARE
  clock timestamptz := clock_timestamp();
  ends timestamptz;
BEGIN
  ends := date_bin('1 minute', clock + (keep_us + 4)::float8 * interval '1 microsecond', 'epoch') + interval '1 minute';
  IF seen IS NULL THEN
    INSERT INTO @schema@.states_v1 AS s VALUES (of_key, next, ends)
      ON CONFLICT (key) DO UPDATE SET state = next, expires = ends WHERE s.expires <= clock;
  ELSE
    UPDATE @schema@.states_v1 s SET state = next, expires = greatest(s.expires, ends)
      WHERE s.key = of_key AND s.state = seen AND s.expires > clock;
  END IF;
  IF FOUND THEN
    old := seen;
    new := next;
    now_ns := coalesce(instant_ns, trunc(extract(epoch FROM clock) * 1000000000));
  ELSE
    SELECT l.now_ns, l.old INTO now_ns, old FROM @schema@.look_v2(of_key, instant_ns, NULL, NULL) l;
  END IF;
END $swap$;
