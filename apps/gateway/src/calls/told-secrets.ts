import { refuseAny } from '@etude/contracts/wire/validation';

/**
 * Refuses a text with a key or a password, because models and other readers see memory. The message names the kind of secret and its line,
 * and never shows it.
 *
 * @param told texts, or JSON values, by the names of their fields
 * @throws EtudeError INVALID_ARGUMENT naming the fields
 */
export async function refuseSecrets(told: Readonly<Record<string, unknown>>): Promise<void> {
  const reasonOf = await secretReasons();
  refuseAny(
    Object.entries(told).flatMap(([field, value]) => {
      const description = reasonOf(typeof value === 'string' ? value : JSON.stringify(value));
      return description === null ? [] : [{ field, description }];
    }),
  );
}

/** Says why a text is refused; null: it holds no secret. */
export async function secretReasons(): Promise<(text: string) => string | null> {
  // Loaded by the first text, because the rules cost 10 MiB of memory.
  const { findSecrets } = await import('@etude/analysis/find-secrets');
  return (text) => {
    const [found] = findSecrets(text);
    if (found === undefined) return null;
    const where = text.includes('\n') ? ` in line ${found.line}` : '';
    return `must not hold a secret${where}: ${found.rule}. Store the name of the secret, and keep the secret in a vault`;
  };
}
