import { type ReactNode, useEffect, useState } from 'react';
import { Button } from '../ui/button.js';
import { Modal } from '../ui/dialog.js';
import { go, Link } from '../ui/router.js';

/** The main pages: path, title, and the key that opens the page after `g`. */
const PLACES = [
  ['/tasks', 'Tasks', 't'],
  ['/skills', 'Skills', 's'],
  ['/review', 'Review', 'r'],
  ['/memory', 'Memory', 'm'],
  ['/learning', 'Learning', 'l'],
  ['/sandboxes', 'Sandboxes', 'b'],
  ['/operations', 'Operations', 'o'],
] as const;

const KEYS = [
  ['j', 'next row of a list'],
  ['k', 'previous row'],
  ['Enter', 'open the row'],
  ['/', 'search'],
  ...PLACES.map(([, title, key]) => [`g ${key}`, title.toLowerCase()] as const),
  ['Escape', 'leave a field or a dialog'],
  ['?', 'show these keys'],
] as const;

const isTyping = (target: EventTarget | null) => target instanceof Element && target.matches('input, textarea, select, [contenteditable]');

function moveInList(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>('[data-list] tbody tr a:first-of-type')].filter(
    (link, at, all) => all.findIndex((other) => other.closest('tr') === link.closest('tr')) === at,
  );
  const now = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement));
  links[Math.min(Math.max(now + by, 0), links.length - 1)]?.focus();
}

function listenToKeys(onHelp: () => void): () => void {
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
    const place = wasGoing ? PLACES.find(([, , letter]) => letter === key) : undefined;
    if (place !== undefined) return go(place[0]);
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

interface FrameProps {
  readonly path: string;
  readonly onSignOut: () => void;
  readonly children: ReactNode;
}

export function Frame({ path, onSignOut, children }: FrameProps) {
  const [isHelpOpen, setHelpOpen] = useState(false);
  useEffect(() => listenToKeys(() => setHelpOpen(true)), []);
  useEffect(() => {
    const place = PLACES.find(([to]) => path.startsWith(to));
    document.title = place ? `${place[1]} · Etude` : 'Etude';
  }, [path]);
  return (
    <>
      <a
        className="skip"
        href="#content"
        onClick={(event) => (event.preventDefault(), document.querySelector<HTMLElement>('#content')?.focus())}
      >
        Skip to the content
      </a>
      <header className="top">
        <strong>Etude</strong>
        <nav aria-label="Pages">
          {PLACES.map(([to, title]) => (
            <Link key={to} to={to} aria-current={path === to ? 'page' : path.startsWith(`${to}/`) ? 'true' : undefined}>
              {title}
            </Link>
          ))}
        </nav>
        <span className="actions">
          <button type="button" onClick={() => setHelpOpen(true)} aria-keyshortcuts="?">
            Keys
          </button>
          <Button text="Sign out" onPress={onSignOut} />
        </span>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <Modal title="Keys" open={isHelpOpen} onClose={() => setHelpOpen(false)}>
        <dl className="details">
          {KEYS.map(([key, does]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <Button text="Close" onPress={() => setHelpOpen(false)} />
      </Modal>
    </>
  );
}
