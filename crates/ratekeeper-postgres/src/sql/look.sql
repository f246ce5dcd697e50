-- A look: the state and, read after it, the instant. For peeks of any limit, and to begin a compare-and-swap. The same
-- arguments and results as a decision.

CREATE OR REPLACE FUNCTION @schema@.look_v2(
  of_key bytea, instant_ns numeric, grace_us numeric, args numeric[],
  OUT now_ns numeric, OUT old bytea, OUT new bytea
) LANGUAGE plpgsql AS $look$
DECLARE
  clock timestamptz;
  ends timestamptz;
BEGIN
  SELECT s.state, s.expires INTO old, ends FROM @schema@.states_v1 s WHERE s.key = of_key;
  clock := clock_timestamp();
  now_ns := coalesce(instant_ns, trunc(extract(epoch FROM clock) * 1000000000));
  IF ends <= clock THEN
    old := NULL;
  END IF;
END $look$;
