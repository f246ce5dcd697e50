-- What a bucket's key holds; for the scripts of one bucket, after prologue.lua.
--
--   0x21, u64 TAT, u64 reach          17 bytes: the reach is how far ahead the last taker could book
--   0x31, u64 TAT, the limit          43 bytes: of limits with a version, see `record`
--   0x11, u64 TAT                      9 bytes: from earlier versions of this crate; debt like any other, and no proof
-- Those wrote other kinds of limits under the same keys; such values count as absent.
--
-- `record` is what the call's own limit puts behind the TAT: 8 bytes of reach; or version, tokens, period, burst and
-- longest wait. A limit with a version decides on values with its own record alone, one without on values without a
-- version. On any other nothing is done here: the reply is {now, value, 0}, and the caller compares the versions.

-- TAT and whether it had to be repaired; or nil, nil and the script's reply. `reach` is that of the call's limit.
local function opened(old, record, reach)
  local tag, length = old:byte(), #old
  local most_high, most_low
  if tag == 0x21 and length == 17 and #record == 8 then
    local reach_high, reach_low = read('>I4I4', old, 10)
    most_high, most_low = plus(now_high + reach_high, now_low, reach_low)
  elseif tag == 0x31 and length == 43 and old:sub(10) == record then
    most_high, most_low = plus(now_high, now_low, reach)
  elseif tag == 0x11 and length == 9 and #record == 8 then
    most_high = math.huge
  elseif (tag == 0x31 and length == 43) or (tag == 0x21 and length == 17) or (tag == 0x11 and length == 9) then
    return nil, nil, {now, old, 0}
  elseif ((tag == 0x13 or tag == 0x15) and length == 17) or (tag == 0x14 and length % 8 == 1 and length >= 9 and length <= 33)
    or (tag == 0x17 and length >= 17 and length <= 74) then
    return 0, 0, false
  else
    return nil, nil, redis.error_reply('BADSTATE not a token bucket')
  end
  -- Further ahead than its taker could book: only a clock that was set back since explains it.
  local high, low = read('>I4I4', old, 2)
  if high > most_high or (high == most_high and low > most_low) then
    return most_high, most_low, true
  end
  return high, low, false
end

-- Stores what stands behind the tag. With a version, never for less time than was left: of two versions of a limit, the
-- smaller may be full while the larger is not.
local function store(old, tag, high, low, rest, keep_ms)
  local value = pack('>BI4I4', tag, high, low) .. rest
  if old and tag == 0x31 then
    keep_ms = math.max(keep_ms, call('PTTL', KEYS[1]))
  end
  call('SET', KEYS[1], value, 'PX', keep_ms)
  return {now, old or '', value}
end
