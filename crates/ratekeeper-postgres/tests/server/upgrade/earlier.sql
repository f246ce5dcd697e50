-- What version 0.1.0 installed, as far as a token bucket needs it.

-- One row for each key whose state differs from a fresh one. Keys and states are as in every other backend.
--
-- `expires` is rounded up to whole minutes: an update that does not change an indexed column stays on its page ("HOT"),
-- needs no new index entries and is cleaned up without a vacuum. The room that it needs is what `fillfactor` leaves.

SELECT pg_advisory_xact_lock(hashtextextended('ratekeeper ratekeeper', 0));

CREATE SCHEMA IF NOT EXISTS ratekeeper;

CREATE UNLOGGED TABLE IF NOT EXISTS ratekeeper.states_v1 (
  key bytea PRIMARY KEY,
  state bytea NOT NULL,
  expires timestamptz NOT NULL
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX IF NOT EXISTS states_v1_expires ON ratekeeper.states_v1 (expires);

-- Big-endian words of 64 bits, as numbers and back. Planned into the expressions that call them.

CREATE OR REPLACE FUNCTION ratekeeper.word_v1(bytes bytea, at integer) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT mod(
    ('x' || encode(substring(bytes FROM at FOR 8), 'hex'))::bit(64)::bigint + 18446744073709551616,
    18446744073709551616)
$$;

CREATE OR REPLACE FUNCTION ratekeeper.bytes_v1(word numeric) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT int8send((mod(word + 9223372036854775808, 18446744073709551616) - 9223372036854775808)::bigint)
$$;

-- A look: the state and, read after it, the instant. For peeks of any limit, and to begin a compare-and-swap. The same
-- arguments and results as a decision.

CREATE OR REPLACE FUNCTION ratekeeper.look_v1(
  of_key bytea, instant_ns numeric, repairable bytea, grace_us numeric, args numeric[],
  OUT now_ns numeric, OUT old bytea, OUT new bytea
) LANGUAGE plpgsql AS $look$
DECLARE
  clock timestamptz;
  ends timestamptz;
BEGIN
  SELECT s.state, s.expires INTO old, ends FROM ratekeeper.states_v1 s WHERE s.key = of_key;
  clock := clock_timestamp();
  now_ns := coalesce(instant_ns, trunc(extract(epoch FROM clock) * 1000000000));
  IF ends <= clock THEN
    old := NULL;
  END IF;
END $look$;

-- A decision: reads the state, reads the clock, runs a limit's step, and stores what it left. One of these functions for
-- each limit, because calling the step as a function of its own would cost a quarter more.
--
-- of_key      the key's row
-- instant_ns  NULL for the server's clock, or the instant to use instead
-- repairable  with an instant: the state that may be taken for one from a clock that was stepped back, because the instant
--             was read after it
-- grace_us    how much longer than needed a state is kept
-- args        the step's
-- Returns the instant, the state found (NULL if there was none, or it had expired), and the state left: NULL if nothing
-- was written, empty if nothing was written because the state found is not the repairable one.

CREATE OR REPLACE FUNCTION ratekeeper.token_bucket_v1(
  of_key bytea, instant_ns numeric, repairable bytea, grace_us numeric, args numeric[],
  OUT now_ns numeric, OUT old bytea, OUT new bytea
) LANGUAGE plpgsql AS $decide$
DECLARE
  clock timestamptz;
  held bytea;
  ends timestamptz;
  keep_ns numeric;
  repaired boolean;
  must_lock boolean := false;
BEGIN
  LOOP
    -- At first without a lock: whoever is refused then writes nothing at all, not even a lock, and costs no transaction
    -- number and no log. What is to be written is written only over the very state that the step has seen.
    IF must_lock THEN
      SELECT s.state, s.expires INTO held, ends FROM ratekeeper.states_v1 s WHERE s.key = of_key FOR UPDATE;
    ELSE
      SELECT s.state, s.expires INTO held, ends FROM ratekeeper.states_v1 s WHERE s.key = of_key;
    END IF;
    -- Not before: to a reading that is older than the state, that state would be one from a clock that was stepped back.
    -- And not the transaction's time, which is older still.
    clock := clock_timestamp();
    now_ns := coalesce(instant_ns, trunc(extract(epoch FROM clock) * 1000000000));
    old := CASE WHEN ends > clock THEN held END;
    new := NULL;
    repaired := false;
-- State  0x11, TAT: 9 bytes
-- args   op, cost, accepted, charged, run_at; n, p, burst, reach, extra: see bucket.sql
DECLARE
  op numeric := args[1];
  cost numeric := args[2];
  accepted numeric := args[3];
  charged numeric := args[4];
  run_at numeric := args[5];
  n numeric := args[6];
  p numeric := args[7];
  burst numeric := args[8];
  reach numeric := args[9];
  extra numeric := args[10];
  tat numeric := 0;
  granted numeric;
  writes boolean;
BEGIN
  IF old IS NOT NULL THEN
    IF octet_length(old) <> 9 OR substring(old FROM 1 FOR 1) <> '\x11' THEN
      RAISE EXCEPTION 'not a token bucket' USING ERRCODE = 'RK001';
    END IF;
    tat := ratekeeper.word_v1(old, 2);
  END IF;
-- One token bucket of `n` tokens per `p` ns, in lowest terms: moves `tat`, the instant at which it is full again. Part of
-- other steps.
--
-- In:  now_ns, tat; n, p, burst; reach, how far ahead a legal TAT lies at most; op, cost, and by op
--   0 take:    accepted, the smallest grant that will do; extra, the longest wait, at most the limit's
--   1 charge
--   2 refund:  charged, run_at and extra, the mark: all from the receipt; 1 <= cost <= charged
-- Out: tat; granted, NULL if refused; writes; repaired is set if it was too far ahead
DECLARE
  top numeric := least(now_ns + reach, 18446744073709551615);
  base numeric;
  fraction numeric := 0;
  rest numeric;
  short numeric;
  target numeric;
BEGIN
  granted := NULL;
  writes := false;
  IF tat > top THEN
    repaired := true; -- and cut, whatever is asked
  END IF;
  IF op = 2 THEN
    base := CASE WHEN now_ns < run_at THEN tat ELSE least(tat, top) END;
  ELSE
    base := greatest(tat, now_ns);
  END IF;
  -- The last lattice point that is not after it, and the rounding that the point carries: its true value is
  -- base - fraction/n. Where tokens take whole nanoseconds, or less than one, every instant is such a point.
  IF n > 1 AND n < p THEN
    rest := mod(base * n, p);
    short := div(p, n) * n;
    IF rest >= short THEN
      base := base - 1;
      fraction := rest - short;
    ELSE
      fraction := mod(rest, n);
    END IF;
  END IF;

  IF op = 0 THEN
    IF tat > top THEN
      -- It still owes a whole burst.
      tat := top;
      granted := CASE WHEN accepted = 0 THEN 0 END;
      writes := true;
    ELSE
      target := cost;
      IF accepted < cost THEN
        -- The largest cost that passes within the wait, and that keeps the TAT in range.
        target := burst - least(burst, div(greatest(n * (base - now_ns - extra) - fraction, 0) + p - 1, p));
        target := least(target, div(n * (18446744073709551615 - base) + fraction, p), cost);
        IF target = 0 AND accepted = 0 THEN
          granted := 0;
        END IF;
        target := greatest(target, accepted);
      END IF;
      IF granted IS NULL AND target <= burst AND base - div((burst - target) * p + fraction, n) <= now_ns + extra THEN
        rest := base + div(target * p + n - 1 - fraction, n);
        IF rest <= 18446744073709551615 THEN
          tat := rest;
          granted := target;
          writes := true;
        END IF;
      END IF;
    END IF;

  ELSIF op = 1 THEN
    target := least(base + div(cost * p + n - 1 - fraction, n), top);
    granted := cost;
    writes := target <> tat;
    tat := target;

  ELSE
    target := least(tat, top);
    IF now_ns < run_at THEN
      -- A reservation, given back only while nobody stands behind it. Where a token takes less than a nanosecond, what
      -- stays charged must stay rounded up.
      IF tat = extra THEN
        target := base - CASE
          WHEN n > p THEN div(charged * p + n - 1, n) - div((charged - cost) * p + n - 1, n)
          ELSE div(cost * p + fraction, n)
        END;
        target := least(greatest(target, 0), top);
      END IF;
    ELSIF target > now_ns THEN
      -- Back by the cost, but by no more than what of it has not refilled meanwhile. 2 ns cover the rounding of two unrelated
      -- lattice points.
      rest := greatest(target - (extra - now_ns), 0) + CASE WHEN n = 1 OR n > p OR target = extra THEN 0 ELSE 2 END;
      target := least(greatest(base - div(cost * p + fraction, n), rest), target);
    END IF;
    granted := 0;
    writes := target <> tat;
    tat := target;
  END IF;
END;

  IF writes THEN
    new := '\x11'::bytea || ratekeeper.bytes_v1(tat);
    keep_ns := greatest(tat - now_ns, 0);
  END IF;
END;

    IF new IS NULL THEN
      RETURN;
    END IF;
    IF repaired AND instant_ns IS NOT NULL AND old IS DISTINCT FROM repairable THEN
      new := '';
      RETURN;
    END IF;
    -- 4 us cover the rounding of spans above 285 years, which no double holds exactly.
    ends := date_bin('1 minute', clock + (div(keep_ns, 1000) + grace_us + 4)::float8 * interval '1 microsecond', 'epoch')
      + interval '1 minute';
    IF held IS NULL THEN
      INSERT INTO ratekeeper.states_v1 VALUES (of_key, new, ends) ON CONFLICT DO NOTHING;
    ELSE
      UPDATE ratekeeper.states_v1 s SET state = new, expires = ends WHERE s.key = of_key AND s.state = held;
    END IF;
    IF FOUND THEN
      RETURN;
    END IF;
    must_lock := true; -- somebody was faster: from now on, wait for one's turn
  END LOOP;
END $decide$;
