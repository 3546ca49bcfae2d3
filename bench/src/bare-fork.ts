import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What a sandbox's interpreter has loaded before it forks, so that both are warmed alike. */
const RUNNER = fileURLToPath(new URL('../../libs/sandbox', import.meta.url));

/** Reads a program per line (JSON text), runs it in a fork of this warm interpreter, answers a line when it has ended. */
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

/** The baseline of an execution: fork a warm interpreter and run the code, with no sandbox, queue or record around it. */
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
