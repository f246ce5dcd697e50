-- Fixed window, aligned or anchored. After prologue.lua.
--
-- State    0x15, u64 start ns, u32 open (1 or 0), u32 count: 17 bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian; the window is at most 3.0e15 ns
--   B op, d grace_ms, d limit, d window, d offset (below the window; -1 for anchored), then by op
--   0 take, as much as fits:  d cost, d least; 1 <= least <= cost (equal: all or nothing), both cut to 2^53
--   1 refund:                 d cost, of what was charged, cut to 2^53; I4I4 mark, the receipt's
-- Reply    {now, old state or '', new state or '' if none was written}

local op, grace_ms, limit, window, offset, cost, least = read('>Bdddddd', ARGV[2])
local anchored = offset < 0
local old = call('GET', KEYS[1])
local high, low, open, count = 0, 0, 0, 0
if old then
  if #old ~= 17 or old:byte() ~= 0x15 then
    return redis.error_reply('BADSTATE not a fixed window')
  end
  high, low, open, count = read('>I4I4I4I4', old, 2)
end

-- An aligned window without a count is as good as none; an anchored one still ends in time. A clock behind by up to a
-- window is an old reading; further, it was stepped back, and the count comes along.
local elapsed = (now_high - high) * 2^32 + (now_low - low)
local live = open == 1 and (count > 0 or anchored)
local repaired = live and elapsed < -window
local stays = live and elapsed >= -window and elapsed < (anchored and window or 0)

-- The start of the window that contains now; for one that stays, on this limit's own grid.
local start_high, start_low = now_high, now_low
if stays then
  start_high, start_low = high, low
end
if not anchored then
  local since_high, since_low = plus(start_high, start_low, -offset)
  if since_high < 0 then
    start_high, start_low = 0, 0 -- the epoch cuts the first window short
  else
    local since = (math.fmod(since_high * 2^32, window) + since_low) % window
    start_high, start_low = plus(start_high, start_low, -since)
  end
end
local is_later = start_high > high or (start_high == high and start_low > low)
if not live or (not stays and not repaired and (anchored or is_later)) then
  open, count = 0, 0
end

local changed = repaired
if op == 0 then
  local grant = math.min(cost, limit - count)
  if grant >= least then
    open, count, changed = 1, count + grant, true
  end
elseif open == 1 and cost > 0 then
  local mark_high, mark_low = read('>I4I4', ARGV[2], 42)
  if mark_high == start_high and mark_low == start_low then
    count, changed = math.max(0, count - cost), true
  end
end
local state = pack('>BI4I4I4I4', 0x15, start_high, start_low, open, count)
if not changed or (op == 1 and state == old) then
  return {now, old or '', ''}
end

-- Kept to the end of the window.
local keep = 0
if count > 0 or anchored then
  keep = (start_high - now_high) * 2^32 + (start_low - now_low) + window
  if start_high * 2^32 + start_low < offset then
    keep = offset - (now_high * 2^32 + now_low)
  end
end
call('SET', KEYS[1], state, 'PX', math.ceil(math.max(0, keep) / 1000000) + grace_ms)
return {now, old or '', state}
