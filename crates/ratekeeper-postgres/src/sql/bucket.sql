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
