import { basename, dirname, join, posix } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { decodeUtf8, filesBelow } from '../files.js';
import { judgedProblem, type Problem, type ProgramCase, programLimits, type RefusedProblem } from './problems.js';
import { readFileSync, statSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { type Entry, fromBufferPromise } from 'yauzl';
import { CliError, EXIT } from '../errors.js';

/** Files by their path in the folder or archive, with "/". */
type PackedFiles = ReadonlyMap<string, Buffer>;

const BYTES_MAX = 512 * 1024 * 1024;

function refuseBeyondMax(bytes: number, path: string): void {
  if (bytes > BYTES_MAX) throw new CliError(EXIT.usage, `${path} has more than ${BYTES_MAX / 1024 / 1024} MiB`);
}

/** @throws CliError beyond 512 MiB */
export function filesOfFolder(folder: string, isWanted: (path: string) => boolean): PackedFiles {
  const files = new Map<string, Buffer>();
  let bytes = 0;
  for (const path of filesBelow(folder).filter(isWanted)) {
    refuseBeyondMax((bytes += statSync(join(folder, path)).size), folder);
    files.set(path, readFileSync(join(folder, path)));
  }
  return files;
}

/** Unpacks a zip in memory. @throws CliError beyond 512 MiB, and for an archive that is damaged or encrypted */
export async function filesOfZip(zipped: Buffer, path: string, isWanted: (path: string) => boolean): Promise<PackedFiles> {
  const files = new Map<string, Buffer>();
  let bytes = 0;
  try {
    const zip = await fromBufferPromise(zipped, { lazyEntries: true, strictFileNames: true });
    for await (const entry of zip.eachEntry() as AsyncIterable<Entry>) {
      if (entry.fileName.endsWith('/') || !isWanted(entry.fileName)) continue;
      // The library refuses a file that unpacks to more bytes than its header states.
      refuseBeyondMax((bytes += entry.uncompressedSize), path);
      files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)));
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.usage, `${path} can't be unpacked: ${(error as Error).message}`, [], { cause: error });
  }
  return files;
}

/** problem.yaml of a Kattis problem package (kattis.com/problem-package-format, versions legacy and 2023-07). */
const Config = z.looseObject({
  name: z.union([z.string(), z.record(z.string(), z.string())]).nullish(),
  type: z.union([z.string(), z.array(z.string())]).nullish(),
  validation: z.string().nullish(),
  validator_flags: z.string().nullish(),
  limits: z.looseObject({ time_limit: z.number().positive().nullish(), memory: z.number().positive().nullish() }).nullish(),
});
type Config = z.infer<typeof Config>;
const Flags = z.union([z.string(), z.array(z.string()).transform((words) => words.join(' '))]).nullish();
/** testdata.yaml, which is called test_group.yaml since version 2023-07. */
const Group = z.looseObject({ output_validator_flags: Flags, output_validator_args: Flags }).nullish();

const CONFIG = 'problem.yaml';

/** The problems of all packages among the files. @param path of the folder or archive; names a package at the root */
export function kattisProblems(files: PackedFiles, path: string): Array<Problem | RefusedProblem> {
  const configs = [...files.keys()].filter((file) => basename(file) === CONFIG);
  const roots = configs.map((file) => file.slice(0, -CONFIG.length)).toSorted();
  const outer = roots.filter((root) => !roots.some((other) => other !== root && root.startsWith(other)));
  return outer.map((root) => {
    const own = new Map([...files].flatMap(([file, bytes]) => (file.startsWith(root) ? [[file.slice(root.length), bytes]] : [])));
    const id = root === '' ? basename(path).replace(/\.(?:zip|kpp)$/i, '') : basename(dirname(`${root}x`));
    return judgedProblem(id, () => specJson(own));
  });
}

/** @throws Error with the reason why the package can't be judged exactly */
function specJson(files: PackedFiles): object {
  const config = Config.parse(parse(textOf(files, CONFIG)));
  refuseUnlessPlain(config, files);
  const inputs = [...files.keys()].filter((file) => /^data\/(?:sample|secret)\/.+\.in$/.test(file)).toSorted();
  if (inputs.length === 0) throw new Error('it has no cases in data/sample and data/secret');
  const cases = inputs.map((input) => caseOf(input, files));
  const { time_limit, memory } = config.limits ?? {};
  const seconds = time_limit ?? (files.has('.timelimit') ? Number(textOf(files, '.timelimit')) : null);
  const limits = programLimits(cases, { seconds, memoryMiB: memory });
  const spec = { ...flagsOf(config.validator_flags ?? '', files, inputs), cases };
  return { prompt: statementOf(config, files), limits, evaluator: { named: { name: 'kattis_output', spec } } };
}

function refuseUnlessPlain({ type, validation }: Config, files: PackedFiles): void {
  const odd = [type ?? 'pass-fail'].flat().find((one) => one !== 'pass-fail');
  if (odd !== undefined) throw new Error(`it is a problem of the type ${odd}; only pass-fail can be judged`);
  const has = (pattern: RegExp) => [...files.keys()].some((file) => pattern.test(file));
  if (validation?.startsWith('custom') || (validation !== 'default' && has(/^output_validators?\//)))
    throw new Error(`it has a validator of its own (validation: ${validation ?? 'output_validator'}), which isn't run`);
  if (has(/^include\//)) throw new Error('it adds files to the answer (include/), which is not supported');
  if (has(/^data\/(?:sample|secret)\/.*\.(?:args|files|interaction)$/))
    throw new Error('its cases have arguments, files or interaction, which are not supported');
}

const caseOf = (input: string, files: PackedFiles): ProgramCase => ({
  stdin: textOf(files, input),
  expectedStdout: textOf(files, input.replace(/in$/, 'ans')),
  public: input.startsWith('data/sample/'),
});

/** The validator's flags as fields of the evaluator. @throws Error for unknown flags, and for flags that differ between cases */
function flagsOf(own: string, files: PackedFiles, inputs: readonly string[]): object {
  const all = new Set(inputs.map((input) => groupFlags(files, posix.dirname(input))));
  if (all.size > 1) throw new Error('its test groups have different validator flags; only one set is supported');
  const words = `${own} ${[...all].join(' ')}`.split(/\s+/).filter((word) => word !== '');
  const flags: Record<string, boolean | number> = {};
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word === 'case_sensitive') flags['caseSensitive'] = true;
    else if (word === 'space_change_sensitive') flags['spaceSensitive'] = true;
    else {
      const [, kind] = /^float_((?:absolute_|relative_)?tolerance)$/.exec(word) ?? [];
      const tolerance = Number(words[++at] ?? Number.NaN);
      if (kind === undefined || !(tolerance >= 0)) throw new Error(`its validator flag ${word} is unknown or lacks a number`);
      if (kind !== 'relative_tolerance') flags['absoluteTolerance'] = tolerance;
      if (kind !== 'absolute_tolerance') flags['relativeTolerance'] = tolerance;
    }
  }
  return flags;
}

function groupFlags(files: PackedFiles, folder: string): string {
  for (const name of ['testdata.yaml', 'test_group.yaml']) {
    const path = `${folder}/${name}`;
    const group = files.has(path) ? Group.parse(parse(textOf(files, path))) : null;
    const flags = group?.output_validator_flags ?? group?.output_validator_args;
    if (typeof flags === 'string') return flags;
  }
  return folder === 'data' ? '' : groupFlags(files, posix.dirname(folder));
}

function statementOf({ name }: Config, files: PackedFiles): string {
  const statements = [...files.keys()].filter((file) => /^(?:problem_)?statement\/problem(?:\.[\w-]+)?\.(?:md|tex)$/.test(file)).toSorted();
  const [path] = [...statements.filter((file) => /problem(?:\.en[\w-]*)?\.\w+$/.test(file)), ...statements];
  if (path === undefined) throw new Error('it has no statement in Markdown or LaTeX');
  const title = typeof name === 'string' ? name : (name?.['en'] ?? Object.values(name ?? {})[0]);
  return `${title === undefined ? '' : `# ${title}\n\n`}${textOf(files, path)}`;
}

function textOf(files: PackedFiles, path: string): string {
  const bytes = files.get(path);
  if (bytes === undefined) throw new Error(`it has no ${path}`);
  return decodeUtf8(bytes, path);
}
