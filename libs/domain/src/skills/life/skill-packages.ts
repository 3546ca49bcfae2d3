import { EtudeError } from '@etude/contracts/errors';

/** Packages beyond the standard library, as "name==version". The key is the name of the kind of sandbox that has them. */
export type SandboxPackages = Readonly<Record<string, readonly string[]>>;

/** Returns the kind of sandbox that has these packages. undefined means the default kind. */
export type TemplateFor = (packages: readonly string[]) => string | undefined;

const DEFAULT = 'default';

/**
 * The kind of sandbox with all of these packages, in these versions: the default kind if it has them, else the kind with the fewest
 * packages. Nothing is installed when a skill runs.
 *
 * @throws EtudeError FAILED_PRECONDITION, which names the requested and the available packages
 */
export const templatesOf =
  (templates: SandboxPackages): TemplateFor =>
  (packages) => {
    const wanted = packages.map(normal);
    const fitting = Object.entries(templates)
      .filter(([, has]) => wanted.every((one) => has.some((other) => normal(other) === one)))
      .toSorted(([a, hasA], [b, hasB]) => Number(b === DEFAULT) - Number(a === DEFAULT) || hasA.length - hasB.length || (a < b ? -1 : 1));
    if (wanted.length === 0 || fitting[0]?.[0] === DEFAULT) return undefined;
    if (fitting[0] !== undefined) return fitting[0][0];
    throw new EtudeError('FAILED_PRECONDITION', `No sandbox has ${packages.join(', ')}. ${allowed(templates)}`);
  };

function allowed(templates: SandboxPackages): string {
  const kinds = Object.entries(templates).filter(([, has]) => has.length > 0);
  if (kinds.length === 0)
    return 'In this installation skills can use only the standard library. An operator adds packages with ETUDE_SANDBOX_PACKAGES_PATH: see docs/skill-files.md, "Packages".';
  return `A skill can use one of these sets: ${kinds.map(([name, has]) => `${has.join(', ')} (${name})`).join('; or ')}.`;
}

/** A package in its normal form. In its name, case makes no difference, and "-", "_" and "." mean the same. */
function normal(text: string): string {
  const [name = '', version = ''] = text.split('==');
  return `${name.toLowerCase().replaceAll(/[-_.]+/g, '-')}==${version}`;
}
