// The keyboard and the clipboard in the console: the menu that leads everywhere, keys for views and searches, and copies of IDs. Over the fake.
import assert from 'node:assert/strict'

import { accessible, narrow, shoot } from './chromium.mjs'
import { opened } from './opened.mjs'

const at = (page, hash) => page.waitForFunction(hash => location.hash === hash, hash)
// The browser announces that a dialog has closed a moment later; until then it has the keys.
const gone = page => page.locator('dialog').waitFor({ state: 'detached' })

opened('the menu leads to a tool, a call and a search by the keyboard', { hash: '#/plugins' }, async page => {
  const text = page.getByRole('combobox', { name: 'A view, plugin, tool or call ID' })
  const go = async (words, ...keys) => {
    await page.keyboard.press('Control+k')
    await text.fill(words)
    await page.locator('.found li').first().waitFor()
    for (const key of keys) await page.keyboard.press(key)
  }
  await go('file')
  await page.getByRole('option', { name: 'file_write Tool' }).waitFor()
  assert.equal(await page.locator('.found [aria-selected=true]').textContent(), 'files Plugin')
  assert.equal(await text.getAttribute('aria-activedescendant'), await page.locator('.found [aria-selected=true]').getAttribute('id'))
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await at(page, '#/tools/file_read')
  await gone(page)
  await go('call_DONE', 'Enter')
  await at(page, '#/calls/call_DONE')
  await page.locator('.steps').waitFor()
  await go('a&b <i>', 'Enter')
  await page.waitForURL(/#\/audit\?text=a%26b(%20|\+)%3Ci%3E$/) // the view writes the address anew when it is there
  assert.equal(await page.getByLabel('Text').inputValue(), 'a&b <i>')
  await go('aud', 'Escape')
  await gone(page)
})
opened('the menu is there while plugins and tools cannot be listed', { more: { plugins: { status: 500, error: { code: 'internal', text: 'no' } } } }, async page => {
  await page.getByRole('button', { name: 'Go to …' }).click()
  await page.getByRole('option', { name: 'Sessions View' }).click()
  await at(page, '#/sessions')
})
opened('keys lead to views and to the search, but not from a field', { hash: '#/tools' }, async page => {
  const text = page.getByRole('searchbox')
  await text.waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('gp/?')
  assert.equal(await text.inputValue(), 'gp/?')
  assert.equal(await page.locator('dialog').count(), 0)
  await text.blur()
  await page.keyboard.press('p') // without g before
  await page.keyboard.press('g')
  await page.keyboard.press('p')
  await at(page, '#/plugins')
})
opened('keys of one letter can be turned off, the menu not', {}, async page => {
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).getByRole('checkbox').uncheck()
  await page.keyboard.press('Escape')
  await gone(page)
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await page.keyboard.press('?')
  await page.reload()
  await page.locator('main h1').waitFor()
  await page.keyboard.press('?')
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Go to …' }).waitFor()
  assert.equal(await page.locator('dialog').count(), 1)
  assert.doesNotMatch(page.url(), /tools/)
})
for (const [size, language, theme] of [['desktop', 'en', 'dark'], ['phone', 'ja', 'light']]) {
  opened(`the menu and the keys fit and can be used by all: ${size}`, { size, language, theme }, async page => {
    for (const [key, shown, name] of [['Control+k', '.found', 'menu'], ['?', '.keys', 'keys']]) {
      await page.keyboard.press(key)
      await page.locator(shown).waitFor()
      await narrow(page, name)
      await accessible(page, name)
      await shoot(page, `console-${name}-${size}-${language}-${theme}`)
      await page.keyboard.press('Escape')
      await gone(page)
    }
  })
}
opened('an ID is copied whole, and it is said', { hash: '#/calls/call_DONE', permissions: ['clipboard-read', 'clipboard-write'] }, async page => {
  const trace = page.locator('.facts div').filter({ hasText: 'Trace' })
  const copy = part => Promise.all([part.getByText('Copied.').waitFor(), part.getByRole('button', { name: 'Copy' }).click()])
  await copy(trace)
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), '4bf92f3577b34da6a3ce929d0e0e4736')
  await copy(page.locator('.listing').first())
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /panic: runtime error/)
})
