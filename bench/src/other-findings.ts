/** A finding as tool, query and fact. */
export type Triple = [tool: string, query: string, fact: string];
/** Names of the files in each area, with a function that says what the file defines. */
type Files = ReadonlyArray<readonly [string, (area: string, file: string) => string]>;

const SHOP =
  'orders users carts products coupons shipping invoices reviews wishlist taxes vendors stores returns subscriptions gifts accounts catalog prices sessions tickets surveys banners loyalty warehouse couriers contracts budgets events rooms menus recipes courses lessons teams projects';
const SHOP_FILES: Files = [
  ['models views forms schema events errors tasks', (area, file) => `${area}_${file}, ${file}_of, Base`],
  ['client retry cache queue store filters sorting', (area, file) => `${file}_${area}, Config, close`],
  ['import export validate render archive merge lock', (area, file) => `${file}_one, ${file}_all_${area}`],
  ['metrics audit limits search mail report access', (area, file) => `${area}_${file}, LIMIT, main`],
];

const DRAWING =
  'canvas layers brushes palette shapes text fonts selection guides grid rulers outlines comments pages templates assets plugins history clipboard shortcuts toolbar panels dialogs zoom viewport presence account teams sharing library icons animation timeline effects masks';
const DRAWING_FILES: Files = [
  ['View Menu Store Actions Reducer Types Hooks', (area, file) => `${titled(area)}${file}, use${titled(area)}${file}, Props`],
  ['Service Client Loader Cache Worker Queue Parser', (area, file) => `${file.toLowerCase()}Of${titled(area)}, Options, close`],
  [
    'Settings Theme Events Listener Keymap Commands Registry',
    (area, file) => `register${titled(area)}${file}, DEFAULT_${file.toUpperCase()}`,
  ],
  [
    'Renderer Layout Migration Telemetry Errors Fixtures Permissions',
    (area, file) => `${area}${file}, ${file}Error, MAX_${area.toUpperCase()}`,
  ],
];

/** 980 files of a shop in Python. */
export const pythonFindings = () => findingsOf(SHOP, SHOP_FILES, (area, file) => `src/${area}/${file}.py`);

/** 980 files of a drawing program in TypeScript. */
export const typescriptFindings = () => findingsOf(DRAWING, DRAWING_FILES, (area, file) => `packages/${area}/src/${area}${file}.ts`);

function findingsOf(areas: string, kinds: Files, pathOf: (area: string, file: string) => string): Triple[] {
  const files = kinds.flatMap(([names, defined]) => names.split(' ').map((file) => [file, defined] as const));
  return areas.split(' ').flatMap((area) => files.map(([file, defined]): Triple => read(pathOf(area, file), defined(area, file))));
}

const read = (path: string, defined: string): Triple => ['fs_read', path, `File contains: ${defined}`];
const titled = (word: string) => `${word[0]?.toUpperCase()}${word.slice(1)}`;
