// The login page: a token, single sign-on, or the link that hako printed.
import { h, icon, put } from './dom.js'
import { t } from './language.js'
import { problem } from './parts.js'
import { login } from './server.js'
import { switches } from './settings.js'

/** loginPage shows the login form. why, a key of the dictionary or an element, gives the reason; entered is called with the session. */
export function loginPage(session, why, entered) {
  document.title = `${t('login.title')} – hako`
  const { token, oidc } = session.logins
  return h('main', { class: 'login' },
    h('div', { class: 'login-card' },
      h('h1', {}, h('img', { src: 'icon.svg', alt: '', width: 28, height: 28 }), t('login.title')),
      why && h('div', { role: 'alert' }, why instanceof Node ? why : h('p', { class: 'notice' }, t(why))),
      oidc && h('a', { class: 'button primary', href: 'api/oidc/login' }, t('login.oidc', { name: oidc.name })),
      oidc && token && h('p', { class: 'or' }, t('login.or')),
      token && tokenForm(entered, !oidc),
      h('p', { class: 'hint' }, t('login.link'), ' ', h('code', {}, 'hako console'))),
    h('footer', {}, switches(() => entered())))
}

function tokenForm(entered, first) {
  const input = h('input', { id: 'token', type: 'password', autocomplete: 'current-password', required: true, autofocus: first, spellcheck: 'false' })
  const trouble = h('div', { role: 'alert' })
  const button = h('button', { type: 'submit', class: first ? 'primary' : null }, icon('right'), t('login.enter'))
  const submit = async event => {
    event.preventDefault()
    button.disabled = true
    try {
      entered(await login({ token: input.value.trim() }))
    } catch (error) {
      put(trouble, problem(error))
      input.select()
    }
    button.disabled = false
  }
  return h('form', { onsubmit: submit }, h('label', { for: 'token' }, t('login.token')), input, trouble, button)
}
