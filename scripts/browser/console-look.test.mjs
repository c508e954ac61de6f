// Every view of the console in both languages, both themes, at a desk and on a phone: nothing wider than the window, nothing that axe-core finds,
// nothing against the content security policy. Screenshots go to dist/browser.
import { after, before, test } from 'node:test'

import { answers, call, session, signedOut } from './answers.mjs'
import { accessible, clean, narrow, shoot, sizes, startChromium, uncut, visit } from './chromium.mjs'
import { startFake } from './fake.mjs'

// Each view with what shows that it is there.
const views = {
  overview: '.stat', calls: 'h1', 'calls/call_DONE': '.steps', approvals: '.question', plugins: 'tbody tr', 'plugins/files': '.facts', 'plugins/shell': '.facts', find: 'tbody tr', tools: 'tbody tr', 'tools/get_weather': 'form', toolsets: 'tbody tr', 'toolsets/support': 'tbody tr', 'toolsets?draft=support': '.result pre',
  audit: 'tbody tr', errors: 'tbody tr', sessions: 'tbody tr', tokens: 'tbody tr', connections: 'tbody tr', configuration: 'tbody tr',
  policy: 'tbody tr', 'policy/table': 'tbody tr', 'policy/explain': 'form', 'policy/try': 'form',
}

let chromium, host, stranger
before(async () => {
  chromium = await startChromium()
  host = await startFake(answers(session()))
  stranger = await startFake({ session: signedOut })
})
after(async () => {
  await chromium.close()
  await Promise.all([host.stop(), stranger.stop()])
})

// axe-core takes its time, so it looks at each theme, size and language once and not at each combination.
const examined = new Set(['desktop-en-light', 'phone-ja-dark'])

for (const size of Object.keys(sizes)) {
  for (const [language, theme] of [['en', 'light'], ['ja', 'dark'], ['en', 'dark'], ['ja', 'light']]) {
    test(`${size}, ${language}, ${theme}`, async () => {
      const kind = `${size}-${language}-${theme}`
      const named = name => `console-${name.replace(/[/?=]/g, '-')}-${kind}`
      const login = await chromium.open(stranger.url, { size, language, theme })
      await login.locator('#token').waitFor()
      await looked(login, named('login'), examined.has(kind))
      await clean(login)
      const page = await chromium.open(host.url, { size, language, theme })
      for (const [view, shown] of Object.entries(views)) {
        await visit(page, view)
        await page.locator(`.${view.split(/[/?]/)[0]} ${shown}`).first().waitFor()
        if (view === 'calls') await showCalls(page)
        await looked(page, named(view), examined.has(kind))
      }
      await dialogs(page, named, examined.has(kind))
      await clean(page)
    })
  }
}

async function looked(page, name, examine) {
  await narrow(page, name)
  await uncut(page, name)
  if (examine) await accessible(page, name)
  await shoot(page, name)
}

async function showCalls(page) {
  await host.connected()
  for (let id = 1; id <= 12; id++) {
    host.send('call', call(id, id % 4 === 3 ? { tool: 'shell_exec', plugin: 'shell', user: 'ken@example.com', frontend: 'slack', outcome: 'not_allowed', failed: true, decision: 'deny', rule: 'no deletes from chat', durationMs: 0.4 } : { durationMs: id * 7.7 }))
  }
  await page.locator('.calls tbody tr').nth(13).waitFor()
}

async function dialogs(page, named, examine) {
  await visit(page, 'plugins')
  await page.locator('.plugins .head .primary').click()
  await page.locator('.drop').waitFor()
  await looked(page, named('add'), examine)
  await page.locator('.drop input').setInputFiles({ name: '../../files.wasm', mimeType: 'application/wasm', buffer: Buffer.from('{}') })
  await page.locator('dialog .facts').waitFor()
  await looked(page, named('add-confirm'), examine)
  await page.keyboard.press('Escape')
  await visit(page, 'find')
  await page.locator('.find .opener').first().click()
  await page.locator('dialog .facts').waitFor()
  await looked(page, named('find-confirm'), examine)
  await page.keyboard.press('Escape')
  await visit(page, 'sessions')
  await page.locator('.sessions tbody button').first().click()
  await page.locator('dialog .facts').waitFor()
  await looked(page, named('end-session'), examine)
  await page.keyboard.press('Escape')
  await visit(page, 'tokens')
  await page.locator('.tokens .head .primary').click()
  await page.locator('dialog form').waitFor()
  await looked(page, named('new-token'), examine)
  await page.locator('dialog form input').first().fill('ci-test')
  await page.locator('dialog form .primary').click()
  await page.locator('dialog .secret').waitFor()
  await looked(page, named('shown-token'), examine)
  await page.keyboard.press('Escape')
  await page.locator('.tokens tbody button').first().click()
  await page.locator('dialog .danger').waitFor()
  await looked(page, named('revoke-token'), examine)
  await page.keyboard.press('Escape')
  await page.locator('.tokens .card tbody button').first().click()
  await page.locator('dialog .danger').waitFor()
  await looked(page, named('end-login'), examine)
  await page.keyboard.press('Escape')
  await page.locator('.tokens .card .row button').click()
  await page.locator('dialog form select').waitFor()
  await looked(page, named('block-user'), examine)
  await page.keyboard.press('Escape')
  await visit(page, 'plugins/files')
  await page.locator('.plugins .head .primary').click()
  await page.locator('dialog[open]').waitFor()
  await looked(page, named('approve'), examine)
  await page.keyboard.press('Escape')
  await visit(page, 'plugins/shell')
  await page.locator('.plugins .head h1', { hasText: 'shell' }).waitFor()
  await page.locator('.plugins .head .primary').click()
  await page.locator('dialog form').waitFor()
  await looked(page, named('choose'), examine)
  await page.keyboard.press('Escape')
  await visit(page, 'audit')
  await page.locator('.audit .opener').nth(1).click()
  await page.locator('dialog[open]').waitFor()
  await looked(page, named('record'), examine)
  await page.keyboard.press('Escape')
  await visit(page, 'tools/get_weather')
  await page.getByLabel('location').fill('東京')
  await page.locator('form .primary').click()
  await page.locator('.result pre').first().waitFor()
  await looked(page, named('result'), examine)
}
