-- KEYS marks of the tenant. ARGV whose, from when on their data is new (ms since 1970) or '' for now. Answers that time. A mark that is
-- there is never put back.
function scripts.markErased()
  -- What is made in this very millisecond is before it.
  local at = ARGV[2] ~= '' and tonumber(ARGV[2]) or now() + 1
  local known = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
  if at > known then redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', at)) end
  return string.format('%d', at)
end
