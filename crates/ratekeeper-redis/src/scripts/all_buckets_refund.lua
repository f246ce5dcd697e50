-- Gives tokens back to 1 to 4 token buckets in one value. After prologue.lua, muldiv.lua, lattice.lua and refund.lua.
--
-- Value    0x24, then u64 TAT, u64 reach for each bucket: 1 + 16·count bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian: d grace_ms, then 80 bytes for each bucket as in refund.lua; `after`, and how much was charged, are the
--          receipt's for it
-- Reply    {now, old value or '', new value or '' if none was written}

local count = (#ARGV[2] - 8) / 80
local old = call('GET', KEYS[1])
if not old then
  return {now, '', ''}
elseif #old ~= 1 + 16 * count or old:byte() ~= 0x24 then
  return redis.error_reply('BADSTATE not that many token buckets')
end

local parts, keep = {'\036'}, 0
for i = 1, count do
  local high, low, most_high, most_low = read('>I4I4I4I4', old, 16 * i - 14)
  most_high, most_low = plus(now_high + most_high, now_low, most_low)
  if before(most_high, most_low, high, low) then
    high, low = most_high, most_low
  end
  high, low = refunded(high, low, 80 * i - 71)
  keep = math.max(keep, (high - now_high) * 2^32 + (low - now_low))
  parts[i + 1] = pack('>I4I4', high, low) .. old:sub(16 * i - 6, 16 * i + 1)
end
local value = table.concat(parts)
if value == old then
  return {now, old, ''}
end
call('SET', KEYS[1], value, 'PX', math.ceil(keep / 1000000) + read('>d', ARGV[2]))
return {now, old, value}
