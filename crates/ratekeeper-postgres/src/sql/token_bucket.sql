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
    tat := @schema@.word_v1(old, 2);
  END IF;
@bucket@
  IF writes THEN
    new := '\x11'::bytea || @schema@.bytes_v1(tat);
    keep_ns := greatest(tat - now_ns, 0);
  END IF;
END;
