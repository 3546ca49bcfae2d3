import { EtudeError } from '@etude/contracts/errors';

/** What each kind of sandbox lets code import beyond the standard library, "name==version", by the kind's name. */
export type SandboxPackages = Readonly<Record<string, readonly string[]>>;

/** Answers which kind of sandbox has these packages; undefined is the one that every execution gets. */
export type TemplateFor = (packages: readonly string[]) => string | undefined;

const DEFAULT = 'default';

/**
 * The kind of sandbox with all of these packages, in these versions: the default one where it has them, else the one with the fewest.
 * Nothing is ever installed when a skill runs: what no image has, no skill can have.
 *
 * @throws EtudeError FAILED_PRECONDITION naming what is missing and what there is
 */
export function templateFor(packages: readonly string[], templates: SandboxPackages): string | undefined {
  const wanted = packages.map(normal);
  const fitting = Object.entries(templates)
    .filter(([, has]) => wanted.every((one) => has.some((other) => normal(other) === one)))
    .toSorted(([a, hasA], [b, hasB]) => Number(b === DEFAULT) - Number(a === DEFAULT) || hasA.length - hasB.length || (a < b ? -1 : 1));
  if (wanted.length === 0 || fitting[0]?.[0] === DEFAULT) return undefined;
  if (fitting[0] !== undefined) return fitting[0][0];
  throw new EtudeError('FAILED_PRECONDITION', `No sandbox has ${packages.join(', ')}. ${allowed(templates)}`);
}

/** `templateFor` with what an installation has. */
export function templatesOf(templates: SandboxPackages): TemplateFor {
  return (packages) => templateFor(packages, templates);
}

function allowed(templates: SandboxPackages): string {
  const kinds = Object.entries(templates).filter(([, has]) => has.length > 0);
  if (kinds.length === 0)
    return 'Skills have the standard library alone here. An operator adds packages by ETUDE_SANDBOX_PACKAGES_PATH: see docs/skill-files.md, "Packages".';
  return `Allowed are, together: ${kinds.map(([name, has]) => `${has.join(', ')} (${name})`).join('; or ')}.`;
}

function normal(text: string): string {
  const [name = '', version = ''] = text.split('==');
  return `${packageName(name)}==${version}`;
}

/** Names are the same whatever their case, and whether they are written with "-", "_" or ".". */
export function packageName(written: string): string {
  return written.toLowerCase().replaceAll(/[-_.]+/g, '-');
}
