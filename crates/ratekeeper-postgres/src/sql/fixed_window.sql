-- Aligned: windows begin at `shift` and whole multiples of `span` after it. Anchored: at a key's first request.
--
-- State  0x15, u64 start ns, u32 open (1 or not), u32 count: 17 bytes
-- args   op, most, span ns, anchored (1 or 0), shift ns (below span; 0 if anchored), cost, then by op
--   0 take:    accepted, the smallest grant that will do
--   1 refund:  the receipt's mark; cost is at most what was charged
DECLARE
  op numeric := args[1];
  most numeric := args[2];
  span numeric := args[3];
  anchored boolean := args[4] = 1;
  shift numeric := args[5];
  cost numeric := args[6];
  began numeric := 0;
  counted numeric := 0;
  is_open boolean := false;
  opening numeric := now_ns;
  ahead boolean := false;
  writes boolean := false;
BEGIN
  IF old IS NOT NULL THEN
    IF octet_length(old) <> 17 OR substring(old FROM 1 FOR 1) <> '\x15' THEN
      RAISE EXCEPTION 'not a fixed window' USING ERRCODE = 'RK001';
    END IF;
    began := @schema@.word_v1(old, 2);
    counted := @schema@.word_v1(old, 10);
    is_open := div(counted, 4294967296) = 1;
    counted := mod(counted, 4294967296);
  END IF;
  -- The start of the window that a request would open now. The epoch cuts the first one short.
  IF NOT anchored THEN
    opening := CASE WHEN now_ns < shift THEN 0 ELSE now_ns - mod(now_ns - shift, span) END;
  END IF;

  -- A window that begins after now: the clock was stepped back. The count comes along.
  IF is_open AND began > now_ns THEN
    began := opening;
    ahead := true;
  END IF;
  IF NOT is_open OR (counted = 0 AND NOT anchored) THEN
    is_open := false;
  ELSIF anchored THEN
    is_open := now_ns - began < span;
  ELSE
    -- On this limit's own grid, should the state come from another one.
    is_open := began >= opening;
    began := opening;
  END IF;
  IF NOT is_open THEN
    began := opening;
    counted := 0;
  END IF;

  IF op = 0 THEN
    IF args[7] < cost THEN
      cost := greatest(least(cost, most - counted), args[7]);
    END IF;
    IF cost > 0 AND counted + cost <= most THEN
      counted := counted + cost;
      is_open := true;
      writes := true;
    END IF;
  ELSIF is_open AND args[7] = began AND cost > 0 THEN
    counted := greatest(counted - cost, 0);
    writes := true;
  END IF;

  IF writes OR ahead THEN
    -- Refused, it stays as it is but for its beginning.
    is_open := is_open OR NOT writes;
    new := '\x15'::bytea || @schema@.bytes_v1(began) || @schema@.bytes_v1(CASE WHEN is_open THEN 4294967296 ELSE 0 END + counted);
    keep_ns := CASE
      WHEN counted = 0 AND NOT anchored THEN 0
      WHEN began < shift THEN shift - now_ns
      ELSE began + span - now_ns
    END;
    keep_ns := greatest(keep_ns, 0);
    IF new = old THEN
      new := NULL; -- given back what was not there
    END IF;
  END IF;
END;
