import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { EtudeError } from '@etude/contracts/errors';
import { TemplateName } from '@etude/contracts/sandbox';
import { packageName, type SandboxPackages } from '@etude/domain/skills/life/skill-packages';

/** Folders of packages by the sandbox template that has them. */
export type Overlays = ReadonlyMap<string, string>;

/**
 * The templates of local sandboxes: each folder in `path` is one by its name, and holds what its code may import beyond the standard
 * library, as `pip install --target` puts it there. Files beside them are left alone.
 *
 * @throws EtudeError FAILED_PRECONDITION naming the setting and the path
 */
export async function readOverlays(path: string): Promise<Overlays> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: Error) => {
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `ETUDE_SANDBOX_OVERLAYS_PATH=${path} can't be read: ${error.message}`,
      {},
      { cause: error },
    );
  });
  const names = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  const wrong = names.find((name) => !TemplateName.safeParse(name).success);
  if (wrong !== undefined)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `ETUDE_SANDBOX_OVERLAYS_PATH=${path} has the folder ${JSON.stringify(wrong)}, and its folders are names of sandbox templates: 1 to 30 lower-case letters, digits and "-"`,
    );
  return new Map(names.toSorted().map((name) => [name, resolve(join(path, name))]));
}

/** A package as its metadata tells it; names as `packageName` has them. */
interface Distribution {
  readonly name: string;
  readonly version: string;
  /** What it may need besides, under whatever condition. */
  readonly needs: readonly string[];
}

const METADATA = /^(.+)-([^-]+)\.dist-info$/;
const NEEDED = /^Requires-Dist:\s*([A-Za-z0-9._-]+)/gim;
const SHOWN_MAX = 10;

/**
 * That folders hold what skills are promised: of every template that the list names, all packages in their versions, and none besides but
 * what those need. Folders of templates that the list does not name are nobody's promise.
 *
 * @throws EtudeError FAILED_PRECONDITION naming the template, what is missing, other or too much, and what to do
 */
export async function requirePromised(overlays: Overlays, promised: SandboxPackages): Promise<void> {
  for (const [template, packages] of Object.entries(promised)) {
    const path = overlays.get(template);
    if (path === undefined && packages.length === 0) continue;
    const problems = path === undefined ? ['there is no folder of that name'] : problemsOf(await distributionsIn(path), packages);
    if (problems.length === 0) continue;
    const more = problems.length > SHOWN_MAX ? `; and ${problems.length - SHOWN_MAX} more` : '';
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `The packages of the sandbox template "${template}" are not what ETUDE_SANDBOX_PACKAGES_PATH promises: ` +
        `${problems.slice(0, SHOWN_MAX).join('; ')}${more}. Its folder is ${path ?? 'looked for in that of ETUDE_SANDBOX_OVERLAYS_PATH'}: ` +
        'make it anew with "pip install --target", or correct the list.',
    );
  }
}

function problemsOf(present: readonly Distribution[], promised: readonly string[]): string[] {
  const byName = Map.groupBy(present, ({ name }) => name);
  const known = new Set<string>();
  const problems = promised.flatMap((one) => {
    const [written = '', version = ''] = one.split('==');
    const found = byName.get(packageName(written)) ?? [];
    noteNeeded(packageName(written), byName, known);
    if (found.length === 0) return [`${one} is missing`];
    return found.some((other) => other.version === version)
      ? []
      : [`${one} is there as ${found.map((other) => other.version).join(' and ')}`];
  });
  const twice = [...byName].filter(([, found]) => found.length > 1).map(([name]) => `${name} is there more than once`);
  const unpromised = present
    .filter(({ name }) => !known.has(name))
    .map(({ name, version }) => `${name}==${version} is there and not listed`);
  return [...problems, ...twice, ...unpromised];
}

function noteNeeded(name: string, byName: ReadonlyMap<string, readonly Distribution[]>, known: Set<string>): void {
  if (known.has(name)) return;
  known.add(name);
  for (const { needs } of byName.get(name) ?? []) for (const one of needs) noteNeeded(one, byName, known);
}

/** What follows the first empty line is a description. */
const headersOf = (metadata: string) => metadata.split(/\r?\n\r?\n/, 1)[0] ?? '';

/** What `pip install --target` notes of each package that it puts there. */
async function distributionsIn(path: string): Promise<Distribution[]> {
  const entries = await readdir(path).catch((error: Error) => {
    throw new EtudeError('FAILED_PRECONDITION', `the packages in ${path} can't be read: ${error.message}`, {}, { cause: error });
  });
  const folders = entries.map((entry) => METADATA.exec(entry)).filter((found) => found !== null);
  return Promise.all(
    folders.map(async ([folder, name = '', version = '']) => {
      const metadata = await readFile(join(path, folder, 'METADATA'), 'utf8').catch(() => '');
      return {
        name: packageName(name),
        version,
        needs: [...headersOf(metadata).matchAll(NEEDED)].map(([, needed = '']) => packageName(needed)),
      };
    }),
  );
}
