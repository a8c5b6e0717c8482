"""Texts that break counters, and a strategy that makes more of them."""

from __future__ import annotations

from hypothesis import strategies as st

ENGLISH = (
    "The quick brown fox jumps over the lazy dog. It wasn't what we'd expected, but the results were clear:\n"
    "customers who had paid in March could return their orders within thirty days, and nobody else could.\n"
)
SCRIPTS: dict[str, str] = {
    "english": ENGLISH,
    "chinese": "请在三十天内退货，否则不予退款。本店保留最终解释权。",
    "kana": "これはテストです。カタカナとひらがな、そして漢字。",
    "hangul": "안녕하세요, 주문하신 상품은 내일 도착합니다.",
    "arabic": "يمكنك إرجاع الطلب خلال ثلاثين يومًا من تاريخ الشراء.",
    "thai": "คุณสามารถคืนสินค้าได้ภายในสามสิบวัน",
    "hindi": "आप तीस दिनों के भीतर ऑर्डर वापस कर सकते हैं।",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪🇫🇷 👍🏽 ❤️ 5️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "code": "def f(x: int) -> str:\n    return f'{x!r:>10}'  # ok\n\n\nclass A:\n\tpass\n",
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
    "blanks": "a" + " " * 37 + "b\t\t\t\n\n\n   \r\n \u00a0\u3000 c" + " " * 9,
    "control tokens": "<|endoftext|><|im_start|>system<|im_end|><|fim_prefix|>",
    "surrogates": "a\ud800b\udfffc \ud83d\ude00 \ud83d",
    "long s": "it'\u017f 'S don'till 'RE can'T",
    "json": '{"id":1842,"items":[{"sku":"A-1","qty":2},{"sku":"B-2","qty":1}],"note":null}',
    "zalgo": "Z" + "\u0301\u0316\u0320" * 9 + "algo",
    "odd": "\x00\x1c\x1f\x85\u2028\u200b\ufeff\ufffd\U0010ffff",
    "slashes": "a!\n/\n//\n\n/b http://x.y/z?q=1\n",
    "rare pairs": "qzjxkv gkwvyfyv zqxj ZQXJ vkvkvk",
    "camel": "camelCaseHTTPServerError_snake_case-kebab XMLHttpRequest",
    "digits": "1234567890 12 3.14159 1e-9 ٣٤٥٦ ²³ Ⅷ",
}

_WORDS = ["the", " the", "Foo", " bar", "'s", "'ll", "qx", "ing", "中文", "の", "한", "é", "ß", "ſ", "ಲ"]
_GLUE = [
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "/",
    "\n/",
    "!",
    ".",
    ",",
    "'",
    '"',
    "{",
    "}",
    "-",
    "=",
    "\u00a0",
    "\u2028",
    "\x1c",
    "\x85",
    "\u3000",
    "。",
    "，",
    "\u0301",
    "\u200d",
    "😀",
    "\ud800",
    "\udc00",
    "0",
    "12",
    "999",
    "²",
]
hostile_text = st.lists(
    st.one_of(
        st.sampled_from(_GLUE),
        st.sampled_from(_WORDS),
        st.text(max_size=6),
        st.text(alphabet=st.characters(max_codepoint=127), max_size=8),
        st.builds(lambda char, n: char * n, st.sampled_from(" \nab'/1!中"), st.integers(1, 40)),
    ),
    max_size=24,
).map("".join)
