-- State  0x13, u64 start ns, u32 count of the window before, u32 count of this one: 17 bytes
-- args   op, most, span ns, cost, then by op
--   0 take:    accepted, the smallest grant that will do
--   1 refund:  the receipt's mark; cost is at most what was charged
DECLARE
  op numeric := args[1];
  most numeric := args[2];
  span numeric := args[3];
  cost numeric := args[4];
  began numeric := 0;
  before numeric := 0;
  counted numeric := 0;
  age numeric := 0;
  carried numeric;
  ahead boolean := false;
  writes boolean := false;
BEGIN
  IF old IS NOT NULL THEN
    IF octet_length(old) <> 17 OR substring(old FROM 1 FOR 1) <> '\x13' THEN
      RAISE EXCEPTION 'not a sliding window' USING ERRCODE = 'RK001';
    END IF;
    began := @schema@.word_v1(old, 2);
    counted := @schema@.word_v1(old, 10);
    before := div(counted, 4294967296);
    counted := mod(counted, 4294967296);
  END IF;
  -- A window that begins after now: the clock was stepped back. The counts come along.
  IF began > now_ns AND before + counted > 0 THEN
    began := now_ns;
    ahead := true;
  END IF;

  IF op = 0 THEN
    IF before + counted = 0 THEN
      began := now_ns;
    ELSE
      age := now_ns - began;
      IF age >= 2 * span OR (age >= span AND counted = 0) THEN
        began := now_ns;
        before := 0;
        counted := 0;
        age := 0;
      ELSIF age >= span THEN
        began := began + span;
        before := counted;
        counted := 0;
        age := age - span;
      END IF;
    END IF;
    -- The previous count weighs by the share of its window that the sliding one still covers, rounded up.
    carried := div(before * (span - age) + span - 1, span);
    IF args[5] < cost THEN
      cost := greatest(least(cost, most - counted - carried), args[5]);
    END IF;
    IF cost > 0 AND counted + cost + carried <= most THEN
      counted := counted + cost;
      writes := true;
    END IF;
  -- Counts are taken back where they are, before the windows move on.
  ELSIF args[5] = began AND counted > 0 AND cost > 0 THEN
    counted := greatest(counted - cost, 0);
    writes := true;
  ELSIF args[5] = began - span AND before > 0 AND cost > 0 THEN
    before := greatest(before - cost, 0);
    writes := true;
  END IF;

  IF writes OR ahead THEN
    new := '\x13'::bytea || @schema@.bytes_v1(began) || @schema@.bytes_v1(before * 4294967296 + counted);
    keep_ns := CASE WHEN counted > 0 THEN began + 2 * span - now_ns WHEN before > 0 THEN began + span - now_ns ELSE 0 END;
    keep_ns := greatest(keep_ns, 0);
  END IF;
END;
