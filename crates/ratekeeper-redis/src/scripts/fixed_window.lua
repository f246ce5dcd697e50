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

-- The start of the window that contains now.
local opening_high, opening_low = now_high, now_low
if not anchored then
  local since_high, since_low = plus(now_high, now_low, -offset)
  if since_high < 0 then
    opening_high, opening_low = 0, 0 -- the epoch cuts the first window short
  else
    local since = (math.fmod(since_high * 2^32, window) + since_low) % window
    opening_high, opening_low = plus(now_high, now_low, -since)
  end
end

-- A window that begins after now comes from a clock that was ahead: it begins now, with its count, and that is stored
-- whatever the request comes to.
local elapsed = (now_high - high) * 2^32 + (now_low - low)
local left
if open == 1 and elapsed < 0 then
  high, low = opening_high, opening_low
  elapsed = (now_high - high) * 2^32 + (now_low - low)
  left = pack('>BI4I4I4I4', 0x15, high, low, 1, count)
end

-- An aligned window without a count is as good as none; an anchored one still ends in time.
local live = open == 1 and (count > 0 or anchored)
local is_over = elapsed >= window
if not anchored then
  is_over = high < opening_high or (high == opening_high and low < opening_low)
end
if not live or is_over then
  high, low, open, count = opening_high, opening_low, 0, 0
elseif not anchored then
  high, low = opening_high, opening_low
end

if op == 0 then
  local grant = math.min(cost, limit - count)
  if grant >= least then
    open, count = 1, count + grant
    left = pack('>BI4I4I4I4', 0x15, high, low, 1, count)
  end
elseif open == 1 and cost > 0 then
  local mark_high, mark_low = read('>I4I4', ARGV[2], 42)
  if mark_high == high and mark_low == low then
    count = math.max(0, count - cost)
    left = pack('>BI4I4I4I4', 0x15, high, low, 1, count)
  end
end
if not left or left == old then
  return {now, old or '', ''}
end

-- Kept to the end of the window.
local keep = 0
if count > 0 or anchored then
  keep = (high - now_high) * 2^32 + (low - now_low) + window
  if high * 2^32 + low < offset then
    keep = offset - (now_high * 2^32 + now_low)
  end
end
call('SET', KEYS[1], left, 'PX', math.ceil(math.max(0, keep) / 1000000) + grace_ms)
return {now, old or '', left}
