import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';

/**
 * One behind the other. All were looked at before; what is refused all the same, such as where others took the last places meanwhile, leaves
 * those before it stored, and the same import again finds them.
 *
 * @throws EtudeError of the one that is refused; it says what was stored
 */
export async function storeImport<R>(
  registrations: readonly R[],
  register: (registration: R) => Promise<Skill>,
): Promise<readonly Skill[]> {
  const stored: Skill[] = [];
  for (const one of registrations) {
    try {
      stored.push(await register(one));
    } catch (error) {
      throw stored.length === 0 ? error : withStored(error, stored, registrations.length);
    }
  }
  return stored;
}

function withStored(cause: unknown, stored: readonly Skill[], count: number): unknown {
  if (!(cause instanceof Error) || errorCode(cause) === 'INTERNAL') return cause;
  const names = stored.map(({ name, version }) => `${name}@${version}`).join(', ');
  const message = `${cause.message}; of ${count} skills of this import ${stored.length} were stored before: ${names}. The same import again finds them.`;
  return new EtudeError(errorCode(cause), message, errorDetails(cause), { cause });
}
