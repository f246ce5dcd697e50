-- Compare-and-swap of a whole state, for limits that have no script of their own. After prologue.lua.
--
-- ARGV[1]  see prologue.lua
-- ARGV[2]  the state expected, '' for none
-- ARGV[3]  the new state
-- ARGV[4]  milliseconds to keep it, above 0
-- Reply    {now, state found or '', new state or ''}; the last is '' if another state than expected was found

local found = call('GET', KEYS[1])
if found == '' then
  return redis.error_reply('BADSTATE an empty value') -- the reply could not tell it from none
end
found = found or ''
if found ~= ARGV[2] then
  return {now, found, ''}
end
call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return {now, found, ARGV[3]}
