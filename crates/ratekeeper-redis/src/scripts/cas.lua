-- Compare-and-swap of a whole value, for limits that have no script of their own and for changes of limits. After
-- prologue.lua.
--
-- ARGV[1]  see prologue.lua
-- ARGV[2]  the value expected, '' for none
-- ARGV[3]  the new value
-- ARGV[4]  milliseconds to keep it, above 0; never less than what is left of the old one
-- Reply    {now, value found or '', new value or ''}; the last is '' if another value than expected was found

local found = call('GET', KEYS[1])
if found == '' then
  return redis.error_reply('BADSTATE an empty value') -- the reply could not tell it from none
end
found = found or ''
if found ~= ARGV[2] then
  return {now, found, ''}
end
local keep_ms = tonumber(ARGV[4])
if found ~= '' then
  keep_ms = math.max(keep_ms, call('PTTL', KEYS[1]))
end
call('SET', KEYS[1], ARGV[3], 'PX', keep_ms)
return {now, found, ARGV[3]}
