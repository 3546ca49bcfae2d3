import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Folder of the modules that a sandbox's interpreter loads before it forks. The baseline loads these modules too. */
const RUNNER = fileURLToPath(new URL('../../libs/sandbox', import.meta.url));

/** Reads one program per line, as a JSON string. Runs it in a fork of this warm interpreter, and prints a line when the fork has ended. */
const FORK_SERVER = `
import json, os, sys
sys.path.insert(0, ${JSON.stringify(RUNNER)})
from runner.zygote import preload
preload()
sys.path.pop(0)
for line in sys.stdin:
    source = json.loads(line)
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, 'w') as sink:
            sys.stdout = sink
            exec(compile(source, 'solution.py', 'exec'), {'__name__': '__main__'})
        os._exit(0)
    os.waitpid(pid, 0)
    sys.stdout.write('done\\n')
    sys.stdout.flush()
`;

export interface BareFork {
  run(source: string): Promise<void>;
  close(): Promise<void>;
}

/** The baseline of an execution: forks a warm interpreter and runs the code, without a sandbox, queue or record. */
export function startBareFork(): BareFork {
  const child = spawn('/usr/bin/python3', ['-I', '-S', '-B', '-c', FORK_SERVER], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async run(source) {
      child.stdin.write(`${JSON.stringify(source)}\n`);
      await lines.next();
    },
    async close() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}
