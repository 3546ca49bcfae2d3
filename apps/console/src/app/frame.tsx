import { type ReactNode, useEffect, useState } from 'react';
import { Modal } from '../ui/dialog.js';
import { KEYS, listenToKeys } from './keys.js';
import { Link } from '../ui/router.js';
import { applyTheme, nextTheme, theme } from './theme.js';

const PLACES = [
  ['/tasks', 'Tasks'],
  ['/skills', 'Skills'],
  ['/review', 'Review'],
  ['/memory', 'Memory'],
  ['/learning', 'Learning'],
  ['/sandboxes', 'Sandboxes'],
  ['/operations', 'Operations'],
] as const;

interface FrameProps {
  readonly path: string;
  readonly onSignOut: () => void;
  readonly children: ReactNode;
}

/** What surrounds every page: the way to the others, colours, keys, and signing out. */
export function Frame({ path, onSignOut, children }: FrameProps) {
  const [colours, setColours] = useState(theme);
  const [isHelpOpen, setHelpOpen] = useState(false);
  useEffect(() => listenToKeys(() => setHelpOpen(true)), []);
  useEffect(() => {
    const place = PLACES.find(([to]) => path.startsWith(to));
    document.title = place ? `${place[1]} · Etude` : 'Etude';
  }, [path]);
  const changeColours = () => {
    const next = nextTheme(colours);
    applyTheme(next);
    setColours(next);
  };
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
          <button type="button" onClick={changeColours}>
            Colours: {colours}
          </button>
          <button type="button" onClick={() => setHelpOpen(true)} aria-keyshortcuts="?">
            Keys
          </button>
          <button type="button" onClick={onSignOut}>
            Sign out
          </button>
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
        <button type="button" onClick={() => setHelpOpen(false)}>
          Close
        </button>
      </Modal>
    </>
  );
}
