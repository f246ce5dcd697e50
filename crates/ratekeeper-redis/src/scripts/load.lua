-- Looks: the instant and the state, read together. For peeks at any limit but the log, and to begin a
-- compare-and-swap. After prologue.lua.
--
-- ARGV[1]  see prologue.lua
-- Reply    {now, state or '', ''}

local found = call('GET', KEYS[1])
if found == '' then
  return redis.error_reply('BADSTATE an empty value') -- the reply could not tell it from none
end
return {now, found or '', ''}
