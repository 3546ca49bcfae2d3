import { invalidField } from '@etude/contracts/wire/validation';

/**
 * Refuses a text that holds a key or a password, because memory is shown to models and other readers. The message names the kind of secret
 * and its line, and never shows it.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the field
 */
export async function refuseSecrets(field: string, text: string): Promise<void> {
  // Loaded by the first text, because the rules cost 10 MiB of memory.
  const { findSecrets } = await import('@etude/analysis/find-secrets');
  const [found] = await findSecrets(text);
  if (found === undefined) return;
  const where = found.line === null ? '' : ` in line ${found.line}`;
  throw invalidField(
    field,
    `must not hold a secret${where}: ${found.message}. Store the name of the secret, and keep the secret in a vault`,
  );
}
