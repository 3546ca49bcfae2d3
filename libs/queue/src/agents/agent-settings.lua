-- Replaces an agent's settings if nobody changed them since they were read.
-- KEYS settings of the tenant. ARGV agent, text as it was read or '', new JSON. Answers the new text, or false if they changed.
function scripts.putAgentSettings()
  if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return false end
  local text = now() .. ' ' .. ARGV[3]
  redis.call('HSET', KEYS[1], ARGV[1], text)
  return text
end
