const PLACE = 'etude-theme';
const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export function theme(): Theme {
  const kept = localStorage.getItem(PLACE);
  return THEMES.find((one) => one === kept) ?? 'system';
}

/** Shows the page in the chosen colours, or in those of the system. */
export function applyTheme(chosen: Theme = theme()): void {
  localStorage.setItem(PLACE, chosen);
  if (chosen === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
}

export const nextTheme = (now: Theme): Theme => THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]!;
