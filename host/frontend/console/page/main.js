// The entry point: it identifies the session, then shows the login page or the console.
import { h, put } from './dom.js'
import { speak } from './language.js'
import { loginPage } from './login.js'
import { problem } from './parts.js'
import { OfflineError, events, identify, login } from './server.js'
import { applyTheme, setting } from './settings.js'
import { openShell } from './shell.js'

const failures = ['denied', 'role', 'expired', 'limited', 'unavailable']
let leave = () => {}

/** show renders the console or the login page, depending on the session. why, a key of the dictionary or an element, is for the login page. */
function show(session, why) {
  leave()
  leave = () => {}
  const change = next => show(next ?? session)
  if (session.user) {
    leave = openShell(session, change)
    return
  }
  put(document.body, loginPage(session, why, change))
  document.querySelector('[autofocus]')?.focus()
}

/** arrival reads the result of a login from the address, and removes it there. */
function arrival() {
  const parts = new URLSearchParams(location.hash.slice(1))
  const [link, failure] = [parts.get('link'), parts.get('login')]
  if (link || failure) history.replaceState(null, '', location.pathname)
  return { link, failure }
}

async function begin({ link, failure }) {
  let session
  try {
    session = await identify()
    if (link) session = await login({ link })
  } catch (error) {
    if (!session || error instanceof OfflineError) return later(error, { link, failure })
    return show(session, error.status === 401 ? 'login.link.used' : problem(error))
  }
  show(session, failure && `login.failed.${failures.includes(failure) ? failure : 'failed'}`)
}

/** later starts again when the server may be reachable. */
function later(error, arrived) {
  put(document.body, h('main', {}, problem(error)))
  setTimeout(begin, 2000, arrived)
}

addEventListener('hashchange', () => { // a link that is pasted into an open tab
  const arrived = arrival()
  if (arrived.link || arrived.failure) begin(arrived)
})
events.addEventListener('signedout', () => identify().then(session => show(session, 'login.ended'), () => {}))
events.addEventListener('hanging', () => document.querySelector('main') || put(document.body, h('main', {}, problem(new OfflineError('no answer')))))
applyTheme()
await speak(setting('language'))
begin(arrival())
