import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { pythonWith } from './python.js';

const run = promisify(execFile);

const SCRIPT = fileURLToPath(new URL('../mcp-clients/client.py', import.meta.url));
const PYTHON_CLIENT = 'mcp==2.3.0';
const RUN_TIMEOUT_MS = 100_000;

/** A Python with the protocol's official client. @throws Error where it can't be installed */
export const pythonMcpClient = () => pythonWith(`mcp-clients/${PYTHON_CLIENT}`, [['--only-binary', ':all:', PYTHON_CLIENT]]);

export interface PythonAnswer {
  readonly protocolVersion: string;
  readonly serverInfo: { readonly name: string };
  /** In the order of the calls; one that failed is `{error}`. */
  readonly answers: ReadonlyArray<Readonly<Record<string, unknown>>>;
}

/** Where a server is. */
export type McpPlace =
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };

/** @param mode "legacy", "auto", or a revision */
export async function askWithPython(python: string, place: McpPlace, mode: string, calls: readonly object[]): Promise<PythonAnswer> {
  const where = 'url' in place ? ['--url', place.url, '--headers', JSON.stringify(place.headers)] : ['--stdio', JSON.stringify(place)];
  const args = [SCRIPT, '--mode', mode, ...where, '--calls', JSON.stringify(calls)];
  const { stdout } = await run(python, args, { timeout: RUN_TIMEOUT_MS, env: { PATH: process.env['PATH'], HOME: process.env['HOME'] } });
  return JSON.parse(stdout) as PythonAnswer;
}
