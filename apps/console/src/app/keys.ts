import { go } from '../ui/router.js';

export const KEYS = [
  ['j', 'next row of a list'],
  ['k', 'row before'],
  ['Enter', 'open the row'],
  ['/', 'search'],
  ['g t', 'tasks'],
  ['g s', 'skills'],
  ['g r', 'review'],
  ['g m', 'memory'],
  ['g l', 'learning'],
  ['g b', 'sandboxes'],
  ['g o', 'operations'],
  ['Escape', 'leave a field or a dialog'],
  ['?', 'these keys'],
] as const;

const PLACES: Readonly<Record<string, string>> = {
  t: '/tasks',
  s: '/skills',
  r: '/review',
  m: '/memory',
  l: '/learning',
  b: '/sandboxes',
  o: '/operations',
};

const isTyping = (target: EventTarget | null) => target instanceof Element && target.matches('input, textarea, select, [contenteditable]');

/** Moves the focus to the link of another row of the list on the page. */
function moveInList(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>('[data-list] tbody tr a:first-of-type')].filter(
    (link, at, all) => all.findIndex((other) => other.closest('tr') === link.closest('tr')) === at,
  );
  const now = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement));
  links[Math.min(Math.max(now + by, 0), links.length - 1)]?.focus();
}

/** Acts on keys of the whole page. Returns how to stop it. */
export function listenToKeys(onHelp: () => void): () => void {
  let isGoing = false;
  const act = (event: KeyboardEvent) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(target)) {
      if (key === 'Escape') (target as HTMLElement).blur();
      return;
    }
    const wasGoing = isGoing;
    isGoing = key === 'g';
    const place = wasGoing ? PLACES[key] : undefined;
    if (place !== undefined) return go(place);
    if (key === 'j') moveInList(1);
    else if (key === 'k') moveInList(-1);
    else if (key === '?') onHelp();
    else if (key === '/') {
      event.preventDefault();
      document.querySelector<HTMLElement>('[data-search]')?.focus();
    }
  };
  addEventListener('keydown', act);
  return () => removeEventListener('keydown', act);
}
