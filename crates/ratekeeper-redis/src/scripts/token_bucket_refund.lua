-- Gives tokens back to a token bucket. After prologue.lua, muldiv.lua, lattice.lua and refund.lua.
--
-- State    0x11, TAT: 9 bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian: d grace_ms, then as in refund.lua
-- Reply    {now, old state or '', new state or '' if none was written}

local old = call('GET', KEYS[1])
local high, low = 0, 0
if old then
  if #old ~= 9 or old:byte() ~= 0x11 then
    return redis.error_reply('BADSTATE not a token bucket')
  end
  high, low = read('>I4I4', old, 2)
end
local new_high, new_low = refunded(high, low, 9)
if new_high == high and new_low == low then
  return {now, old or '', ''}
end
local state = pack('>BI4I4', 0x11, new_high, new_low)
local debt = math.max(0, (new_high - now_high) * 2^32 + (new_low - now_low))
call('SET', KEYS[1], state, 'PX', math.ceil(debt / 1000000) + read('>d', ARGV[2]))
return {now, old or '', state}
