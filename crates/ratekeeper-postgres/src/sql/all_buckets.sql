-- All of several token buckets in one state: charged together or not at all.
--
-- State  0x24, for each bucket its TAT and the reach of its last taker: 1 + 16·count bytes
-- args   op, cost, accepted, run_at; then for each bucket n, p, burst, reach, extra, charged: see bucket.sql
DECLARE
  op numeric := args[1];
  cost numeric := args[2];
  accepted numeric := args[3];
  run_at numeric := args[4];
  n numeric;
  p numeric;
  burst numeric;
  reach numeric;
  extra numeric;
  charged numeric;
  tat numeric;
  granted numeric;
  writes boolean;
  ahead boolean := false;
  count integer := (cardinality(args) - 4) / 6;
  tats numeric[] := array_fill(0::numeric, ARRAY[count]);
  reaches numeric[];
  moved numeric[];
  grants numeric[];
  any_writes boolean;
  least_granted numeric;
  most_granted numeric;
BEGIN
  IF old IS NOT NULL THEN
    IF octet_length(old) <> 1 + 16 * count OR substring(old FROM 1 FOR 1) <> '\x24' THEN
      RAISE EXCEPTION 'not % token buckets', count USING ERRCODE = 'RK001';
    END IF;
    FOR i IN 1..count LOOP
      tat := @schema@.word_v1(old, 16 * i - 14);
      reaches[i] := @schema@.word_v1(old, 16 * i - 6);
      -- No taker moves a TAT further ahead than its reach: the clock was stepped back.
      IF tat > now_ns + reaches[i] THEN
        tat := now_ns + reaches[i];
        ahead := true;
      END IF;
      tats[i] := tat;
    END LOOP;
  END IF;

  LOOP
    any_writes := false;
    FOR i IN 1..count LOOP
      n := args[6 * i - 1];
      p := args[6 * i];
      burst := args[6 * i + 1];
      reach := args[6 * i + 2];
      extra := args[6 * i + 3];
      charged := args[6 * i + 4];
      tat := tats[i];
@bucket@
      moved[i] := tat;
      grants[i] := granted;
      any_writes := any_writes OR writes;
      least_granted := CASE WHEN i = 1 THEN granted WHEN granted < least_granted THEN granted ELSE least_granted END;
      most_granted := CASE WHEN i = 1 THEN granted WHEN granted > most_granted THEN granted ELSE most_granted END;
    END LOOP;
    -- A charge goes to each as far as that has room.
    EXIT WHEN op > 0 OR array_position(grants, NULL) IS NOT NULL OR least_granted = most_granted OR least_granted = 0;
    -- A partial grant is what every bucket can give.
    cost := least_granted;
  END LOOP;

  IF op = 0 AND (array_position(grants, NULL) IS NOT NULL OR least_granted < most_granted) THEN
    -- Refused: nobody is charged.
    moved := tats;
    any_writes := false;
  END IF;
  IF any_writes OR ahead THEN
    new := '\x24';
    keep_ns := 0;
    FOR i IN 1..count LOOP
      -- Who took writes its reach; what is given back, and what stays, leaves it.
      new := new || @schema@.bytes_v1(moved[i])
        || @schema@.bytes_v1(CASE WHEN reaches IS NULL OR (op < 2 AND moved[i] <> tats[i]) THEN args[6 * i + 2] ELSE reaches[i] END);
      keep_ns := greatest(keep_ns, moved[i] - now_ns);
    END LOOP;
  END IF;
END;
