import { spawn } from 'node:child_process';

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Runs a program to its end. @returns its stdout @throws Error with the command and the end of its stderr, unless the exit code is 0 */
export async function run(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { cwd, env = {}, input } = options;
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => {}); // the program closed its stdin early; its exit code tells whether it failed
  child.stdin.end(input ?? '');
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-8_000);
  });
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exit, killedBy) => resolve(exit ?? killedBy));
  });
  const said = Buffer.concat(stdout).toString();
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ended with ${code}\n${(stderr || said).trim()}`);
  return said;
}
