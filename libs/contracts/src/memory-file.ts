/** What a memory file of SQLite says about itself in its header, so that whoever starts a stack can tell before it starts. */
export const MEMORY_FILE = {
  /** "Etud": marks the file as ours. */
  applicationId: 0x4574_7564,
  /** Raised with every change of its tables; a file of another layout is refused, or carried over. */
  layout: 3,
} as const;

/** Why a file of a later layout is not opened, and the way out, in a sentence for people. */
export const laterLayout = (path: string, layout: number): string =>
  `the memory file ${path} was written by a later version of Etude: it has layout ${layout}, and this version reads ${MEMORY_FILE.layout}. ` +
  'Nothing of it was changed. Stop every service that uses it, install the version that wrote it or a later one, and start that; or name another file';
