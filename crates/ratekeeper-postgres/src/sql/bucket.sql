-- One token bucket of `n` tokens per `p` ns, in lowest terms: moves `tat`, the instant at which it is full again. Part of
-- other steps. A TAT ahead of the clock is debt, however far: nothing is cut here.
--
-- In:  now_ns, tat; n, p, burst; reach, how far ahead its takers can book, 0 for a bucket that does not count (unlimited,
--      blocked); op, cost, and by op
--   0 take:    accepted, the smallest grant that will do; extra, the longest wait, at most the limit's
--   1 charge:  as many whole tokens as fit before `reach`
--   2 refund:  charged, run_at and extra, the mark: all from the receipt
-- Out: tat; granted, NULL if refused; writes
DECLARE
  base numeric := CASE WHEN op = 2 THEN tat ELSE greatest(tat, now_ns) END;
  fraction numeric := 0;
  rest numeric;
  short numeric;
  target numeric;
BEGIN
  granted := NULL;
  writes := false;
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

  IF reach = 0 THEN
    IF op = 2 THEN
      granted := 0;
    ELSIF least(cost, burst) >= accepted THEN
      granted := least(cost, burst);
    END IF;

  ELSIF op = 0 THEN
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

  ELSIF op = 1 THEN
    -- Part of a token is not charged: charges that come often would keep the bucket at its deepest.
    rest := greatest(least(now_ns + reach, 18446744073709551615) - base, 0);
    granted := least(div(n * rest + fraction, p), cost);
    IF granted > 0 THEN
      tat := base + div(granted * p + n - 1 - fraction, n);
      writes := true;
    END IF;

  ELSE
    granted := 0;
    short := least(cost, charged);
    target := tat;
    IF short = 0 THEN
      NULL; -- nothing to give back
    ELSIF now_ns < run_at THEN
      -- A reservation, given back only while nobody stands behind it. Where a token takes less than a nanosecond, what
      -- stays charged must stay rounded up.
      IF tat = extra THEN
        target := greatest(0, base - CASE
          WHEN n > p THEN div(charged * p + n - 1, n) - div((charged - short) * p + n - 1, n)
          ELSE div(short * p + fraction, n)
        END);
      END IF;
    ELSIF extra > now_ns AND tat > now_ns
      -- Nor while somebody stands in line: those instants are promised already.
      AND (tat = extra OR base - div(burst * p + fraction, n) <= now_ns)
    THEN
      -- Back by the cost, but by no more than what of it has not refilled meanwhile. 2 ns cover the rounding of two unrelated
      -- lattice points.
      rest := greatest(tat - (extra - now_ns), 0) + CASE WHEN n = 1 OR n > p OR tat = extra THEN 0 ELSE 2 END;
      target := least(greatest(base - div(short * p + fraction, n), rest), tat);
    END IF;
    writes := target <> tat;
    tat := target;
  END IF;
END;
