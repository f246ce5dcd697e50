-- Gives tokens back to a token bucket. After prologue.lua, muldiv.lua, lattice.lua, bucket_value.lua and refund.lua.
--
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian: d grace_ms, d reach, then 80 bytes as in refund.lua, then the record, see bucket_value.lua
-- Reply    {now, old value or '', new value or '' if none was written}; or {now, old value, 0}

local grace_ms, reach = read('>dd', ARGV[2])
local old = call('GET', KEYS[1])
if not old then
  return {now, '', ''}
end
local high, low, repaired = opened(old, ARGV[2]:sub(97), reach)
if not high then
  return repaired
end
local new_high, new_low = refunded(high, low, 17)
if new_high == high and new_low == low and not repaired then
  return {now, old, ''}
end
-- Whoever gives back is no taker: what proves a clock step stays as it is.
local debt = math.max(0, (new_high - now_high) * 2^32 + (new_low - now_low))
return store(old, old:byte(), new_high, new_low, old:sub(10), math.ceil(debt / 1000000) + grace_ms)
