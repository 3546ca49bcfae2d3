-- The beginning of every script. One script is one round trip and one fsync, all or nothing.
-- Scripts use the time of Redis, so that several hosts share one clock. They make keys from the prefix of the keys passed in,
-- so a Redis Cluster needs a hash-tagged prefix.
local scripts = {}

-- A key that repeats the first one stands for a key that the caller left empty.
for i = 2, #KEYS do
  if KEYS[i] == KEYS[1] then KEYS[i] = '' end
end

-- `now`: milliseconds since 1970 by Redis. `emit`: adds one event to a stream.
local function now()
  local t = redis.call('TIME')
  return string.format('%d', t[1] * 1000 + math.floor(t[2] / 1000))
end
local function emit(stream, event) return redis.call('XADD', stream, '*', 'e', event) end

-- Remembers which record a request id made. Answers nil for a new or empty request id. A repeat answers {'known', id}, or {'other', id}
-- if its body differs.
local function once(requestKey, digest, id)
  if requestKey == '' then return nil end
  local known = redis.call('GET', requestKey)
  if known then
    local cut = string.find(known, ' ', 1, true)
    return {string.sub(known, 1, cut - 1) == digest and 'known' or 'other', string.sub(known, cut + 1)}
  end
  redis.call('SET', requestKey, digest .. ' ' .. id)
  return nil
end
