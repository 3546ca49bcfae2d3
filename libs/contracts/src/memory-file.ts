/** The header fields of a SQLite memory file. They let the launcher check the file before services start. */
export const MEMORY_FILE = {
  /** "Etu1": marks the file as a memory file of Etude. */
  applicationId: 0x4574_7531,
  /** Version of the tables, raised with every change. A file with another layout is refused. */
  layout: 1,
} as const;

/** "Etud": marks files of versions before the first release. */
const UNRELEASED_ID = 0x4574_7564;

/** Explains to people why this version can't open a memory file, and what to do; null if it can, and for files of other programs. */
export function memoryFileTrouble(path: string, { applicationId, layout }: { applicationId: number; layout: number }): string | null {
  if (applicationId === UNRELEASED_ID)
    return (
      `the memory file ${path} was written by a version of Etude before the first release, and this version doesn't read it. ` +
      'Nothing of it was changed. Export it with the version that wrote it ("etude memory export"), start anew with another file, and import ' +
      'that there; or move the file away to start with an empty memory'
    );
  if (applicationId !== MEMORY_FILE.applicationId || layout === MEMORY_FILE.layout) return null;
  return (
    `the memory file ${path} was written by a later version of Etude: it has layout ${layout}, and this version reads ${MEMORY_FILE.layout}. ` +
    'Nothing of it was changed. Stop every service that uses it, install the version that wrote it or a later one, and start that; or name another file'
  );
}
