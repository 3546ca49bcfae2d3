import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cluster } from './cluster.js';
import { barePod } from './bare-pod.js';
import { makeNamespace } from './pod-namespace.js';

const IMAGE = process.env['ETUDE_SANDBOX_IMAGE'] ?? '';

describe('a pod of the sandbox image', () => {
  const { kubectl } = cluster();
  let namespace = '';

  beforeAll(async () => {
    namespace = await makeNamespace({ kubectl }, 'pod');
  });

  afterAll(() => kubectl(['delete', 'namespace', namespace]));

  it('becomes ready under the restricted standard', async () => {
    const script = `import os, sqlite3, unittest, decimal, time
hidden = 'open' if os.access('/run/etude/hidden', os.X_OK) else 'closed'
runner = 'writable' if os.access('/opt/etude/runner', os.W_OK) else 'read-only'
print(os.getuid(), hidden, runner, sqlite3.connect(':memory:').execute('select 1').fetchone(), flush=True)
time.sleep(3600)`;
    await kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(barePod('bare', IMAGE, script)));
    await kubectl(['-n', namespace, 'wait', '--for=condition=Ready', 'pod/bare', '--timeout=150s']);
    // Ready says only that its container was started.
    const log = await until(() => kubectl(['-n', namespace, 'logs', 'bare']), { what: 'its first line' });
    expect(log).toBe('65532 closed read-only (1,)\n');
  });

  it('has no file that raises privileges and no folder but its volumes to write to', async () => {
    const script = `import os, stat
raising = [os.path.join(top, name) for top, _, names in os.walk('/usr') for name in names
           if os.lstat(os.path.join(top, name)).st_mode & (stat.S_ISUID | stat.S_ISGID)]
def writes(folder):
    try:
        open(folder + '/.try', 'w').close()
        return True
    except OSError:
        return False
print(raising, [folder for folder in ('/', '/etc', '/opt/etude/runner', '/run', '/var/tmp', '/tmp') if writes(folder)])`;
    await kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(barePod('look', IMAGE, script)));
    await kubectl(['-n', namespace, 'wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/look', '--timeout=150s']);
    expect(await kubectl(['-n', namespace, 'logs', 'look'])).toBe("[] ['/tmp']\n");
  });

  it('is refused where it asks for more than the standard allows', async () => {
    const pod = barePod('root', IMAGE, 'pass');
    pod.spec.securityContext.runAsNonRoot = false;
    await expect(kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(pod))).rejects.toThrow('violates PodSecurity "restricted');
  });
});
