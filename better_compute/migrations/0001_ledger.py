from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    initial = True
    operations = [RunSqlFile("better_compute.store.schema", "0001_ledger.sql", "0001_ledger_down.sql")]
