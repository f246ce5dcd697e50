-- All of several token buckets in one state: charged together or not at all.
--
-- State  0x14, a TAT for each bucket: 1 + 8·count bytes
-- args   op, cost, accepted, charged, run_at; then for each bucket n, p, burst, reach, extra: see bucket.sql
DECLARE
  op numeric := args[1];
  cost numeric := args[2];
  accepted numeric := args[3];
  charged numeric := args[4];
  run_at numeric := args[5];
  n numeric;
  p numeric;
  burst numeric;
  reach numeric;
  extra numeric;
  tat numeric;
  granted numeric;
  writes boolean;
  count integer := (cardinality(args) - 5) / 5;
  tats numeric[] := array_fill(0::numeric, ARRAY[count]);
  moved numeric[];
  grants numeric[];
  written boolean[];
  least_granted numeric;
  most_granted numeric;
BEGIN
  IF old IS NOT NULL THEN
    IF octet_length(old) <> 1 + 8 * count OR substring(old FROM 1 FOR 1) <> '\x14' THEN
      RAISE EXCEPTION 'not % token buckets', count USING ERRCODE = 'RK001';
    END IF;
    FOR i IN 1..count LOOP
      tats[i] := @schema@.word_v1(old, 8 * i - 6);
    END LOOP;
  END IF;

  LOOP
    FOR i IN 1..count LOOP
      n := args[5 * i + 1];
      p := args[5 * i + 2];
      burst := args[5 * i + 3];
      reach := args[5 * i + 4];
      extra := args[5 * i + 5];
      tat := tats[i];
@bucket@
      moved[i] := tat;
      grants[i] := granted;
      written[i] := writes;
      least_granted := CASE WHEN i = 1 THEN granted WHEN granted < least_granted THEN granted ELSE least_granted END;
      most_granted := CASE WHEN i = 1 THEN granted WHEN granted > most_granted THEN granted ELSE most_granted END;
    END LOOP;
    EXIT WHEN array_position(grants, NULL) IS NOT NULL OR least_granted = most_granted OR least_granted = 0;
    -- A partial grant is what every bucket can give.
    cost := least_granted;
  END LOOP;

  IF array_position(grants, NULL) IS NOT NULL OR least_granted < most_granted THEN
    -- Refused: nobody is charged. What was written without a grant was a cut, and stays.
    FOR i IN 1..count LOOP
      IF grants[i] > 0 THEN
        moved[i] := tats[i];
        written[i] := false;
      END IF;
    END LOOP;
  END IF;
  IF true = ANY (written) THEN
    new := '\x14';
    keep_ns := 0;
    FOR i IN 1..count LOOP
      new := new || @schema@.bytes_v1(moved[i]);
      keep_ns := greatest(keep_ns, moved[i] - now_ns);
    END LOOP;
  END IF;
END;
