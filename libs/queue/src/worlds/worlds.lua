-- Stores a move, unless its id is known, or the world changed since it was read.
-- KEYS world, outcome. ARGV world as read, new world, ms to keep the world, outcome, ms to keep the outcome. Answers the stored outcome, or false.
function scripts.moveInWorld()
  local known = redis.call('GET', KEYS[2])
  if known then return known end
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
  return ARGV[4]
end

-- Replaces a world that nobody changed since it was read. KEYS world. ARGV world as read, new world. Answers 1, or 0 if the world changed.
function scripts.replaceWorld()
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
  return 1
end

-- Drops the name of a world that expired. KEYS world, names of the tenant's worlds. ARGV name.
function scripts.dropWorldName()
  if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[1]) end
end
