-- Sliding-window counter. After prologue.lua and muldiv.lua.
--
-- State    0x13, u64 start ns, u32 previous, u32 current: 17 bytes
-- ARGV[1]  see prologue.lua
-- ARGV[2]  big endian; the window is at most 3.0e15 ns, so three of them are below 2^53
--   B op, d grace_ms, d limit, d window, then by op
--   0 take, as much as fits:  d cost, d least; 1 <= least <= cost (equal: all or nothing), both cut to 2^53
--   1 refund:                 d cost, of what was charged, cut to 2^53; I4I4 mark, the receipt's
-- Reply    {now, old state or '', new state or '' if none was written}

local op, grace_ms, limit, window, cost, least = read('>Bddddd', ARGV[2])
local old = call('GET', KEYS[1])
local high, low, previous, current = 0, 0, 0, 0
if old then
  if #old ~= 17 or old:byte() ~= 0x13 then
    return redis.error_reply('BADSTATE not a sliding window')
  end
  high, low, previous, current = read('>I4I4I4I4', old, 2)
end

-- A window that begins after now comes from a clock that was ahead: it begins now, with its counts, and that is stored
-- whatever the request comes to.
local elapsed = (now_high - high) * 2^32 + (now_low - low)
local left
if elapsed < 0 and previous + current > 0 then
  high, low, elapsed = now_high, now_low, 0
  left = pack('>BI4I4I4I4', 0x13, high, low, previous, current)
end

if op == 1 and old then
  -- Counts are taken back where they are, before the windows move on.
  local mark_high, mark_low = read('>I4I4', ARGV[2], 34)
  local next_high, next_low = plus(mark_high, mark_low, window)
  if mark_high == high and mark_low == low then
    current = math.max(0, current - cost)
  elseif next_high == high and next_low == low then
    previous = math.max(0, previous - cost)
  end
  left = pack('>BI4I4I4I4', 0x13, high, low, previous, current)
end

-- To the window that contains now.
if elapsed >= window and elapsed - window < window and current > 0 then
  high, low = plus(high, low, window)
  elapsed, previous, current = elapsed - window, current, 0
elseif elapsed >= window or previous + current == 0 then
  high, low, elapsed, previous, current = now_high, now_low, 0, 0, 0
end

if op == 0 then
  -- The previous count weighs by the share of its window that the sliding one still covers, rounded up.
  local carried, rest = muldiv(previous, window - elapsed, window)
  if rest > 0 then
    carried = carried + 1
  end
  local grant = math.min(cost, limit - current - carried)
  if grant >= least then
    current = current + grant
    left = pack('>BI4I4I4I4', 0x13, high, low, previous, current)
  end
end
if not left or left == old then
  return {now, old or '', ''}
end

-- Kept until both counts have left the sliding window.
local keep = current > 0 and 2 * window - elapsed or previous > 0 and window - elapsed or 0
call('SET', KEYS[1], left, 'PX', math.ceil(keep / 1000000) + grace_ms)
return {now, old or '', left}
