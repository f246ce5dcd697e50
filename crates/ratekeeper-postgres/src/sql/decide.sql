-- A decision: reads the state, reads the clock, runs a limit's step, and stores what it left. One of these functions for
-- each limit, because calling the step as a function of its own would cost a quarter more.
--
-- of_key      the key's row
-- instant_ns  NULL for the server's clock, or the instant to use instead
-- grace_us    how much longer than needed a state is kept
-- args        the step's
-- Returns the instant, the state found (NULL if there was none, or it had expired), and the state left: NULL if nothing
-- was written, empty if nothing was decided because the state found is that of another version of the limit.

CREATE OR REPLACE FUNCTION @schema@.@name@(
  of_key bytea, instant_ns numeric, grace_us numeric, args numeric[],
  OUT now_ns numeric, OUT old bytea, OUT new bytea
) LANGUAGE plpgsql AS $decide$
DECLARE
  clock timestamptz;
  held bytea;
  ends timestamptz;
  keep_ns numeric;
  must_lock boolean := false;
BEGIN
  LOOP
    -- At first without a lock: whoever is refused then writes nothing at all, not even a lock, and costs no transaction
    -- number and no log. What is to be written is written only over the very state that the step has seen.
    IF must_lock THEN
      SELECT s.state, s.expires INTO held, ends FROM @schema@.states_v1 s WHERE s.key = of_key FOR UPDATE;
    ELSE
      SELECT s.state, s.expires INTO held, ends FROM @schema@.states_v1 s WHERE s.key = of_key;
    END IF;
    -- Not before: to a reading that is older than the state, that state would be one from a clock that was stepped back.
    -- And not the transaction's time, which is older still.
    clock := clock_timestamp();
    now_ns := coalesce(instant_ns, trunc(extract(epoch FROM clock) * 1000000000));
    old := CASE WHEN ends > clock THEN held END;
    new := NULL;
@step@
    IF new IS NULL OR new = '' THEN
      RETURN;
    END IF;
    -- 4 us cover the rounding of spans above 285 years, which no double holds exactly.
    ends := date_bin('1 minute', clock + (div(keep_ns, 1000) + grace_us + 4)::float8 * interval '1 microsecond', 'epoch')
      + interval '1 minute';
    IF held IS NULL THEN
      INSERT INTO @schema@.states_v1 VALUES (of_key, new, ends) ON CONFLICT DO NOTHING;
    ELSE
      -- What is left of its time is never shortened: what is full under a smaller limit may not be so under a larger one.
      UPDATE @schema@.states_v1 s SET state = new, expires = greatest(s.expires, ends)
        WHERE s.key = of_key AND s.state = held;
    END IF;
    IF FOUND THEN
      RETURN;
    END IF;
    must_lock := true; -- somebody was faster: from now on, wait for one's turn
  END LOOP;
END $decide$;
