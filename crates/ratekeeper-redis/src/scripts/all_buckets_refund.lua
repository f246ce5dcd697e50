-- Gives tokens back to 1 to 4 token buckets in one value. After prologue.lua, muldiv.lua, lattice.lua and refund.lua.
--
-- State    0x14, a TAT for each bucket: 1 + 8·count bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian: d grace_ms, then 72 bytes for each bucket as in refund.lua; `after` is the receipt's mark for it
-- Reply    {now, old state or '', new state or '' if none was written}

local args = ARGV[2]
local count = (#args - 8) / 72
local old = call('GET', KEYS[1])
local tats = {0, 0, 0, 0, 0, 0, 0, 0}
if old then
  if #old ~= 1 + 8 * count or old:byte() ~= 0x14 then
    return redis.error_reply('BADSTATE not that many token buckets')
  end
  tats = {read('>I4I4I4I4I4I4I4I4', old .. ('\0'):rep(32 - 8 * count), 2)}
end

local changed, keep = false, 0
for i = 1, count do
  local high, low = tats[2 * i - 1], tats[2 * i]
  local new_high, new_low = refunded(high, low, 72 * i - 63)
  changed = changed or new_high ~= high or new_low ~= low
  tats[2 * i - 1], tats[2 * i] = new_high, new_low
  local debt = math.max(0, (new_high - now_high) * 2^32 + (new_low - now_low))
  local _, n, p, short = read('>dddd', args, 72 * i - 63)
  if short > 0 then
    debt = snap(now_high, now_low, debt, n, p, short)
  end
  keep = math.max(keep, debt)
end
if not changed then
  return {now, old or '', ''}
end
local state = pack('>BI4I4I4I4I4I4I4I4', 0x14, unpack(tats, 1, 8)):sub(1, 1 + 8 * count)
call('SET', KEYS[1], state, 'PX', math.ceil(keep / 1000000) + read('>d', args))
return {now, old or '', state}
