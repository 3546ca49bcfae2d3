-- KEYS settings of the tenant. ARGV agent, the text that was read or '', JSON that takes its place. Answers the new text, or false.
function scripts.putAgentSettings()
  if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return false end
  local text = now() .. ' ' .. ARGV[3]
  redis.call('HSET', KEYS[1], ARGV[1], text)
  return text
end
