import { CSPProvider } from '@base-ui/react/csp-provider';
import { createRoot } from 'react-dom/client';
import { App } from './app/app.js';
import { applyTheme } from './app/theme.js';
import './app/style.css';

applyTheme();
createRoot(document.querySelector('#root')!).render(
  <CSPProvider disableStyleElements>
    <App />
  </CSPProvider>,
);
