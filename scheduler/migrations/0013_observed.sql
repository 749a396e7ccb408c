-- A state may say that a person wants its instance to be observed only. A program of before would not read that and apply: this
-- step changes nothing but what database it is, so that such a program refuses it.
SELECT 1;
