-- Stores a request unless its id has one. Drops a result that failed through the infrastructure ('spoilt'), so that the execution is retried.
-- KEYS execution, its task or '', marks of erasures. ARGV request, ttl ms, request without its files, or '' if it has no files.
-- Answers the result, '' if there is no result, or 'gone' if the task may have been erased.
function scripts.prepareExecution()
  if KEYS[2] ~= '' and redis.call('EXISTS', KEYS[2]) == 0 and redis.call('EXISTS', KEYS[3]) == 1 then return 'gone' end
  if redis.call('HSETNX', KEYS[1], 'request', ARGV[1]) == 1 and ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'brief', ARGV[3]) end
  local found = redis.call('HMGET', KEYS[1], 'result', 'spoilt')
  if found[1] and not found[2] then return found[1] end
  redis.call('HDEL', KEYS[1], 'cancelRequested', 'result', 'spoilt')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return ''
end

-- Stores a result unless the execution has one or is gone.
-- KEYS execution. ARGV result, ttl ms, whether it failed through the infrastructure (1 or 0), channel.
function scripts.saveExecution()
  if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
  local saved = redis.call('HSETNX', KEYS[1], 'result', ARGV[1])
  if saved == 1 and ARGV[3] == '1' then redis.call('HSET', KEYS[1], 'spoilt', 1) end
  -- Files may be megabytes, and nobody needs them once there is a result that stays.
  local brief = redis.call('HGET', KEYS[1], 'brief')
  if saved == 1 and ARGV[3] ~= '1' and brief then
    redis.call('HSET', KEYS[1], 'request', brief)
    redis.call('HDEL', KEYS[1], 'brief')
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('PUBLISH', ARGV[4], '')
  return saved
end

-- KEYS execution. ARGV channel. Answers 0 when there is nothing left to cancel.
function scripts.cancelExecution()
  local execution = redis.call('HMGET', KEYS[1], 'request', 'result')
  if not execution[1] or execution[2] then return 0 end
  redis.call('HSET', KEYS[1], 'cancelRequested', 1)
  redis.call('PUBLISH', ARGV[1], '')
  return 1
end
